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
with version as (
  select
    cluster, run_id, started_at, display_id, run_name, account, user_name, partition, qos, submitted_at, ended_at, state,
    is_final, exit_code, placement_id,
    row_number() over (
      partition by cluster, run_id, started_at order by is_final, version_at, batch_id, ended_at, state, account, user_name
    ) as version_rank
  from events.run_recorded
  where started_at >= $start and started_at < $end
)
select
  cluster, run_id, started_at,
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
group by cluster, run_id, started_at
