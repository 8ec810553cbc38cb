/*
grain: one row per day on which attempts started, cluster, GPU model, workload class and hour in which what they hold or want changes
keys: [started_day, cluster, gpu_model, workload_class, step_hour]
partition_by: started_day
units:
  held_shares: change of what is held, in parts of a GPU; wanted and unqueued (of a run whose submission is not known) alike
  held_before_share_seconds: held_shares times the seconds of the hour before the change
invariants:
  what_begins_ends: |
    select started_day, cluster, gpu_model, workload_class from core.demand_step
    group by started_day, cluster, gpu_model, workload_class
    having sum(held_shares) <> 0 or sum(wanted_shares) <> 0 or sum(unqueued_shares) <> 0
*/
-- What an attempt holds changes at its two ends only: each end is a step in the level, less what of its hour lies before it.
-- What it wants is the same, moved to when it was submitted; one that still runs is wanted as long as it is held. The step
-- at which it ends has no hour yet (NULL): the last day known, which moves on. Instants are counted in seconds since 1970:
-- a calendar asked four times an attempt costs ten times as much.
with attempt as (
  select cluster, gpu_model, workload_class, held_shares,
    case when is_queue_known then 0 else held_shares end as unqueued_shares,
    cast(epoch(started_at) as bigint) as started_second,
    cast(epoch(ended_at) as bigint) as ended_second,
    cast(epoch(wanted_from_at) as bigint) as wanted_second
  from core.run_demand
  where started_at >= $start and started_at < $end
),
change as (
  select started_second, cluster, gpu_model, workload_class, started_second as changed_second, held_shares, 0 as wanted_shares,
    unqueued_shares
  from attempt
  union all
  select started_second, cluster, gpu_model, workload_class, ended_second, -held_shares, 0, -unqueued_shares
  from attempt
  union all
  select started_second, cluster, gpu_model, workload_class, wanted_second, 0, held_shares, 0
  from attempt
  union all
  select started_second, cluster, gpu_model, workload_class, ended_second - (started_second - wanted_second), 0, -held_shares, 0
  from attempt
),
step as (
  select cluster, gpu_model, workload_class, started_second // 86400 as day_number, changed_second // 3600 as hour_number,
    sum(held_shares) as held_shares, sum(wanted_shares) as wanted_shares, sum(unqueued_shares) as unqueued_shares,
    sum(held_shares * coalesce(changed_second % 3600, 0)) as held_before,
    sum(wanted_shares * coalesce(changed_second % 3600, 0)) as wanted_before,
    sum(unqueued_shares * coalesce(changed_second % 3600, 0)) as unqueued_before
  from change
  group by cluster, gpu_model, workload_class, started_second // 86400, changed_second // 3600
)
select timestamptz '1970-01-01 00:00:00+00' + day_number * interval 24 hour as started_day, cluster, gpu_model, workload_class,
  timestamptz '1970-01-01 00:00:00+00' + hour_number * interval 1 hour as step_hour,
  cast(held_shares as bigint) as held_shares,
  cast(wanted_shares as bigint) as wanted_shares,
  cast(unqueued_shares as bigint) as unqueued_shares,
  cast(held_before as bigint) as held_before_share_seconds,
  cast(wanted_before as bigint) as wanted_before_share_seconds,
  cast(unqueued_before as bigint) as unqueued_before_share_seconds
from step
