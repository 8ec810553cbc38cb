/*
grain: one row per attempt of a run that held GPUs
keys: [cluster, run_id, started_at]
partition_by: null
stored: view
units: {up_seconds: seconds}
columns:
  cluster: scheduler's cluster
  run_id: scheduler's raw id
  started_at: when the attempt started, UTC
  partition: scheduler's partition; NULL where the scheduler does not say
  workload_class: inference, rigid, deferrable or dev, by policy workload_class; unclassified where none names the run
  gpu_model: GPU model; mixed where the attempt held several
  gpu_count: GPUs that it held, parts of one rounded up
  up_seconds: how long it was up; of an attempt that still runs, until the end of what the ledger knows
  is_interrupted: whether it was ended from outside; NULL where nobody knows when that was
  interrupted_at: when it was interrupted
  cause: preempted, node_fail, spot_reclaimed or other
invariants:
  no_spell_is_negative: select cluster, run_id, started_at from marts.run_spell where up_seconds < 0
*/
with held as (
  select cluster, run_id, started_at, min(gpu_model) as first_model, max(gpu_model) as last_model,
    min(workload_class) as workload_class, (cast(sum(held_shares) as bigint) + 4199) // 4200 as gpu_count
  from core.run_demand
  group by cluster, run_id, started_at
)
select h.cluster, h.run_id, h.started_at, r.partition, h.workload_class,
  case when h.first_model = h.last_model then h.first_model else 'mixed' end as gpu_model, h.gpu_count,
  date_diff('second', h.started_at, coalesce(i.interrupted_at, r.ended_at, l.known_until_at)) as up_seconds,
  case when i.run_id is null then false when i.interrupted_at is not null then true end as is_interrupted,
  i.interrupted_at, i.cause
from held as h
join staged.run as r on r.cluster = h.cluster and r.run_id = h.run_id and r.started_at = h.started_at
cross join reference.ledger as l
left join staged.interruption as i on i.cluster = h.cluster and i.run_id = h.run_id and i.started_at = h.started_at
