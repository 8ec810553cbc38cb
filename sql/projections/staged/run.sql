/*
grain: one row per attempt of a run
keys: [cluster, run_id, started_at]
partition_by: started_at
units: {}
invariants:
  ends_after_it_starts: select cluster, run_id, started_at, ended_at from staged.run where ended_at < started_at
*/
-- A dump that lacks a column says nothing about it: each column takes the newest version that has a value. A final state
-- is never overwritten by one that can still change, whatever came later.
-- A step repeats its job's allocation, so it counts only in time for which no row of the job itself is known, whichever
-- dump brought either. Such steps of a run that touch or overlap are one attempt: from the first start to the last end, in
-- the state of the last, with the allocation of the one with the most devices. Hence the same for any split of a dump.
with orphaned_in_window as (
  select distinct cluster, split_part(run_id, '.', 1) as parent_id
  from events.run_recorded
  where is_from_step and started_at >= $start and started_at < $end
),
told as (
  select cluster, run_id, started_at, display_id, run_name, account, user_name, partition, qos, submitted_at, ended_at, state,
    is_final, is_from_step, exit_code, placement_id, version_at, batch_id
  from events.run_recorded
  where not is_from_step and started_at >= $start and started_at < $end
  union all
  select r.cluster, r.run_id, r.started_at, r.display_id, r.run_name, r.account, r.user_name, r.partition, r.qos, r.submitted_at, r.ended_at,
    r.state, r.is_final, r.is_from_step, r.exit_code, r.placement_id, r.version_at, r.batch_id
  from events.run_recorded as r
  semi join orphaned_in_window as o on o.cluster = r.cluster and o.parent_id = split_part(r.run_id, '.', 1)
  where r.is_from_step
),
version as (
  select
    cluster, run_id, started_at, display_id, run_name, account, user_name, partition, qos, submitted_at, ended_at, state,
    is_final, is_from_step, exit_code, placement_id,
    row_number() over (
      partition by cluster, run_id, started_at order by is_final, version_at, batch_id, ended_at, state, account, user_name
    ) as version_rank
  from told
),
newest as (
  select
    cluster, run_id, started_at, is_from_step,
    max_by(display_id, version_rank) filter (where display_id is not null) as display_id,
    max_by(run_name, version_rank) filter (where run_name is not null) as run_name,
    max_by(account, version_rank) filter (where account is not null) as account,
    max_by(user_name, version_rank) filter (where user_name is not null) as user_name,
    max_by(partition, version_rank) filter (where partition is not null) as partition,
    max_by(qos, version_rank) filter (where qos is not null) as qos,
    max_by(submitted_at, version_rank) filter (where submitted_at is not null) as submitted_at,
    max_by(ended_at, version_rank) filter (where ended_at is not null) as ended_at,
    max_by(state, version_rank) as state,
    max_by(is_final, version_rank) as is_final,
    max_by(exit_code, version_rank) filter (where exit_code is not null) as exit_code,
    max_by(placement_id, version_rank) filter (where placement_id is not null) as placement_id
  from version
  group by cluster, run_id, started_at, is_from_step
),
job as (
  select r.cluster, r.run_id, r.started_at, max(r.ended_at) as ended_at
  from events.run_recorded as r
  join orphaned_in_window as o on o.cluster = r.cluster and o.parent_id = r.run_id
  where not r.is_from_step
  group by r.cluster, r.run_id, r.started_at
),
held as (
  select placement_id, sum(device_count) as device_count
  from (select distinct placement_id, node, gpu_type, device_count from events.run_placed) as device
  group by placement_id
),
orphan as (
  select n.cluster, split_part(n.run_id, '.', 1) as parent_id, n.run_id as step_id, n.started_at, n.ended_at, n.display_id,
    n.account, n.user_name, n.state, n.is_final, n.exit_code, n.placement_id,
    coalesce(n.ended_at, timestamptz '9999-12-31 00:00:00+00') as until_at, coalesce(h.device_count, 0) as device_count
  from newest as n
  left join held as h on h.placement_id = n.placement_id
  where n.is_from_step and not exists (
    select 1 from job as j
    where j.cluster = n.cluster and j.run_id = split_part(n.run_id, '.', 1)
      and (n.ended_at is null or j.started_at <= n.ended_at) and (j.ended_at is null or j.ended_at >= n.started_at))
),
ranked as (
  select cluster, parent_id, step_id, started_at, ended_at, display_id, account, user_name, state, is_final, exit_code,
    placement_id, until_at,
    max(until_at) over (
      partition by cluster, parent_id order by started_at, step_id rows between unbounded preceding and 1 preceding) as held_until_at,
    row_number() over (partition by cluster, parent_id order by until_at, started_at, step_id) as end_rank,
    row_number() over (partition by cluster, parent_id order by device_count, placement_id, step_id, started_at) as device_rank
  from orphan
),
numbered as (
  select cluster, parent_id, started_at, ended_at, display_id, account, user_name, state, is_final, exit_code, placement_id,
    end_rank, device_rank,
    sum(case when held_until_at >= started_at then 0 else 1 end) over (
      partition by cluster, parent_id order by started_at, step_id rows between unbounded preceding and current row) as stretch
  from ranked
),
stepped as (
  select cluster, parent_id as run_id, min(started_at) as started_at,
    max_by(split_part(display_id, '.', 1), end_rank) filter (where display_id is not null) as display_id,
    max_by(account, end_rank) filter (where account is not null) as account,
    max_by(user_name, end_rank) filter (where user_name is not null) as user_name,
    case when count(ended_at) = count(*) then max(ended_at) end as ended_at,
    max_by(state, end_rank) as state,
    max_by(is_final, end_rank) as is_final,
    max_by(exit_code, end_rank) filter (where exit_code is not null) as exit_code,
    max_by(placement_id, device_rank) filter (where placement_id is not null) as placement_id
  from numbered
  group by cluster, parent_id, stretch
)
select cluster, run_id, started_at, display_id, run_name, account, user_name, partition, qos, submitted_at, ended_at, state,
  is_final, is_from_step, exit_code, placement_id
from newest
where not is_from_step
union all
select cluster, run_id, started_at, display_id, null, account, user_name, null, null, null, ended_at, state,
  is_final, true, exit_code, placement_id
from stepped
where started_at >= $start and started_at < $end
