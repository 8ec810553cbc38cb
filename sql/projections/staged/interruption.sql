/*
grain: one row per attempt of a run that was ended from outside
keys: [cluster, run_id, started_at]
partition_by: started_at
units: {}
columns:
  cluster: cluster
  run_id: run, as in run_recorded
  started_at: when the attempt started, as in run_recorded
  interrupted_at: when it was interrupted
  cause: preempted, node_fail, spot_reclaimed or other
  node: "node at fault; NULL: unknown or all"
  gpu_count: whole GPUs that the attempt held; NULL when unknown or when it held slices or parts
  notice_seconds: warning before the interruption
  is_from_state: told only by the scheduler's final state of the attempt
invariants:
  ends_after_it_starts: select cluster, run_id, started_at from staged.interruption where interrupted_at < started_at
*/
-- What was told of the interruption itself counts before what the scheduler's final state says: that a spot instance was
-- taken back looks to a scheduler like a node that failed.
with version as (
  select cluster, run_id, started_at, interrupted_at, cause, node, gpu_count, notice_seconds,
    row_number() over (
      partition by cluster, run_id, started_at order by version_at desc, batch_id desc, interrupted_at, cause) as age
  from events.run_interrupted
  where started_at >= $start and started_at < $end
),
told as (
  select cluster, run_id, started_at, interrupted_at, cause, node, gpu_count, notice_seconds from version where age = 1
),
attempt as (
  select cluster, run_id, started_at, ended_at, state, placement_id
  from staged.run
  where started_at >= $start and started_at < $end
),
interrupted as (
  select cluster, run_id, started_at from told
  union
  select cluster, run_id, started_at from attempt where state in ('PREEMPTED', 'NODE_FAIL', 'REQUEUED')
),
held as (
  select d.placement_id,
    case when count(d.mig_profile) = 0 and count(d.device_shares) = 0 then cast(sum(d.device_count) as bigint) end as gpu_count
  from (
    select distinct placement_id, node, gpu_type, mig_profile, device_shares, device_count from events.run_placed
  ) as d
  semi join attempt as a on a.placement_id = d.placement_id
  group by d.placement_id
)
select i.cluster, i.run_id, i.started_at, coalesce(t.interrupted_at, a.ended_at) as interrupted_at,
  coalesce(t.cause, case a.state when 'PREEMPTED' then 'preempted' when 'NODE_FAIL' then 'node_fail' else 'other' end) as cause,
  t.node, coalesce(t.gpu_count, h.gpu_count) as gpu_count, t.notice_seconds, t.cluster is null as is_from_state
from interrupted as i
left join told as t on t.cluster = i.cluster and t.run_id = i.run_id and t.started_at = i.started_at
left join attempt as a on a.cluster = i.cluster and a.run_id = i.run_id and a.started_at = i.started_at
left join held as h on h.placement_id = a.placement_id
