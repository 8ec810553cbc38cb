/*
grain: one row per cluster, GPU model, workload class and hour in which GPUs were held or wanted
keys: [cluster, gpu_model, workload_class, use_hour]
partition_by: null
units: {share_seconds: 1/4200 of a GPU for one second}
invariants:
  nothing_is_negative: select cluster, use_hour from core.demand_hourly where held_share_seconds < 0 or wanted_share_seconds < 0
  what_was_held_was_wanted: |
    select cluster, sum(held_share_seconds) as held, sum(wanted_share_seconds) as wanted
    from core.demand_hourly group by cluster having sum(wanted_share_seconds) < sum(held_share_seconds)
*/
-- What a run wants is what it held, moved to when it was submitted; one that still runs is wanted until the last day known.
-- An interval changes what is held at its two ends only: each end is a step in the level, less what of its hour lies before
-- it, and hours without a step repeat the level. That is four rows a run however long it ran, so the whole table is made
-- anew each time: runs want GPUs on days long before those that they touch.
with attempt as (
  select d.cluster, d.gpu_model, d.workload_class, d.held_shares, d.started_at, d.wanted_from_at,
    case when d.is_queue_known then 0 else d.held_shares end as unqueued_shares,
    coalesce(d.ended_at, l.known_until_at) as held_until_at,
    case when d.ended_at is null then l.known_until_at
      else d.wanted_from_at + (d.ended_at - d.started_at) end as wanted_until_at
  from core.run_demand as d
  cross join reference.ledger as l
),
change as (
  select cluster, gpu_model, workload_class, started_at as changed_at, held_shares, 0 as wanted_shares, unqueued_shares
  from attempt
  union all
  select cluster, gpu_model, workload_class, held_until_at, -held_shares, 0, -unqueued_shares
  from attempt
  union all
  select cluster, gpu_model, workload_class, wanted_from_at, 0, held_shares, 0
  from attempt
  union all
  select cluster, gpu_model, workload_class, wanted_until_at, 0, -held_shares, 0
  from attempt
),
placed as (
  select cluster, gpu_model, workload_class, date_trunc('hour', changed_at) as step_hour,
    date_diff('second', date_trunc('hour', changed_at), changed_at) as seconds_before, held_shares, wanted_shares, unqueued_shares
  from change
),
step as (
  select cluster, gpu_model, workload_class, step_hour,
    sum(held_shares) as held_shares, sum(held_shares * seconds_before) as held_before,
    sum(wanted_shares) as wanted_shares, sum(wanted_shares * seconds_before) as wanted_before,
    sum(unqueued_shares) as unqueued_shares, sum(unqueued_shares * seconds_before) as unqueued_before
  from placed
  group by cluster, gpu_model, workload_class, step_hour
),
level as (
  select cluster, gpu_model, workload_class, step_hour, held_before, wanted_before, unqueued_before,
    sum(held_shares) over (partition by cluster, gpu_model, workload_class order by step_hour) as held_level,
    sum(wanted_shares) over (partition by cluster, gpu_model, workload_class order by step_hour) as wanted_level,
    sum(unqueued_shares) over (partition by cluster, gpu_model, workload_class order by step_hour) as unqueued_level,
    coalesce(lead(step_hour) over (partition by cluster, gpu_model, workload_class order by step_hour),
      step_hour + interval 1 hour) as next_hour
  from step
),
spread as (
  select cluster, gpu_model, workload_class, step_hour, held_before, wanted_before, unqueued_before, held_level, wanted_level,
    unqueued_level, unnest(generate_series(step_hour, next_hour - interval 1 hour, interval 1 hour)) as use_hour
  from level
),
hourly as (
  select cluster, gpu_model, workload_class, use_hour,
    held_level * 3600 - case when use_hour = step_hour then held_before else 0 end as held_share_seconds,
    wanted_level * 3600 - case when use_hour = step_hour then wanted_before else 0 end as wanted_share_seconds,
    unqueued_level * 3600 - case when use_hour = step_hour then unqueued_before else 0 end as unqueued_share_seconds
  from spread
  union all
  select h.cluster, h.gpu_model, coalesce(p.value, 'unclassified'), h.use_hour, h.share_seconds, h.share_seconds, h.share_seconds
  from core.run_hourly as h
  left join staged.policy as p on p.policy = 'workload_class' and p.subject = concat('account:', h.account)
    and p.from_at <= h.started_at and p.until_at > h.started_at
  where not exists (select 1 from staged.run as r where r.cluster = h.cluster)
)
select cluster, gpu_model, workload_class, use_hour,
  cast(sum(held_share_seconds) as bigint) as held_share_seconds,
  cast(sum(wanted_share_seconds) as bigint) as wanted_share_seconds,
  sum(unqueued_share_seconds) = 0 as is_queue_known
from hourly
where held_share_seconds > 0 or wanted_share_seconds > 0
group by cluster, gpu_model, workload_class, use_hour
