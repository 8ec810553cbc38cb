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
-- Levels are added up along the hours from the steps at which they change; hours without a step repeat the level. The
-- whole table is made anew each time, from few rows: runs want GPUs on days long before those that they touch.
with step as (
  select s.cluster, s.gpu_model, s.workload_class, coalesce(s.step_hour, l.known_until_at) as step_hour,
    sum(s.held_shares) as held_shares, sum(s.held_before_share_seconds) as held_before,
    sum(s.wanted_shares) as wanted_shares, sum(s.wanted_before_share_seconds) as wanted_before,
    sum(s.unqueued_shares) as unqueued_shares, sum(s.unqueued_before_share_seconds) as unqueued_before
  from core.demand_step as s
  cross join reference.ledger as l
  group by s.cluster, s.gpu_model, s.workload_class, coalesce(s.step_hour, l.known_until_at)
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
