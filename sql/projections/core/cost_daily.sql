/*
grain: one row per node, day and claimant (an attempt on one pool of devices, or a bucket that nobody holds)
keys: [cluster, node, use_day, gpu_model, mig_profile, bucket, run_id, started_at]
partition_by: use_day
units:
  cost_micros: the claimant's part of the node's cost; NULL where an hour of it has none
  share_seconds: 1/4200 of a GPU for one second
  lost_share_seconds: the part of share_seconds whose work was lost by an interruption, or was restart work after one
  lost_micros: the known cost of lost_share_seconds, a part of priced_micros
invariants:
  a_node_day_is_split_exactly: |
    select c.cluster, c.node, c.use_day, c.split_micros, n.cost_micros
    from (select cluster, node, date_trunc('day', use_hour) as use_day, sum(cost_micros) as cost_micros
          from core.node_cost_hourly group by cluster, node, date_trunc('day', use_hour)) as n
    left join (select cluster, node, use_day, sum(priced_micros) as split_micros from core.cost_daily group by cluster, node, use_day) as c
      on c.cluster = n.cluster and c.node = n.node and c.use_day = n.use_day
    where coalesce(c.split_micros, 0) <> n.cost_micros
  nothing_is_lost_but_by_runs: |
    select cluster, node, use_day, bucket from core.cost_daily
    where (bucket <> 'allocated' or lost_share_seconds = 0) and lost_micros <> 0
*/
-- Each hour of a node is shared by who holds its GPUs and by what nobody holds, in proportion to share-seconds; the shares
-- are kept to a millionth of a micro, added up over the day, and rounded once: everyone gets the floor of their exact
-- share, and what is left of the day's cost goes, one micro each, to the largest remainders, ties by key.
-- Of an attempt's cost, its lost hours' part is floored to the micro; where it lost the whole day, it is all of it.
with claim as (
  select h.cluster, h.node, h.use_hour, h.gpu_model, h.mig_profile, 'allocated' as bucket, h.run_id, h.started_at, h.account,
    h.share_seconds, coalesce(l.lost_share_seconds, 0) as lost_share_seconds
  from core.run_hourly as h
  left join core.lost_work_hourly as l on l.cluster = h.cluster and l.run_id = h.run_id and l.started_at = h.started_at
    and l.node = h.node and l.gpu_model = h.gpu_model and l.mig_profile = h.mig_profile and l.use_hour = h.use_hour
    and l.use_hour >= $start and l.use_hour < $end
  where h.use_hour >= $start and h.use_hour < $end
  union all
  select cluster, node, use_hour, gpu_model, mig_profile, bucket, '', timestamptz '1970-01-01 00:00:00+00', null, share_seconds, 0
  from core.bucket_hourly
  where use_hour >= $start and use_hour < $end and bucket in ('unallocated', 'down', 'stranded')
),
whole as (
  select c.cluster, c.node, c.use_hour, cast(sum(c.share_seconds) as hugeint) as share_seconds,
    cast(max(n.cost_micros) as hugeint) as cost_micros, cast(max(n.list_micros) as hugeint) as list_micros
  from claim as c
  left join core.node_cost_hourly as n on n.cluster = c.cluster and n.node = c.node and n.use_hour = c.use_hour
    and n.use_hour >= $start and n.use_hour < $end
  group by c.cluster, c.node, c.use_hour
),
daily as (
  select c.cluster, c.node, date_trunc('day', c.use_hour) as use_day, c.gpu_model, c.mig_profile, c.bucket, c.run_id, c.started_at,
    max(c.account) as account, cast(sum(c.share_seconds) as bigint) as share_seconds,
    cast(sum(case when w.cost_micros is null then c.share_seconds else 0 end) as bigint) as unpriced_share_seconds,
    cast(coalesce(sum(w.cost_micros * c.share_seconds * 1000000 // w.share_seconds), 0) as bigint) as exact_e6,
    cast(sum(c.lost_share_seconds) as bigint) as lost_share_seconds,
    cast(coalesce(sum(w.cost_micros * c.lost_share_seconds * 1000000 // w.share_seconds), 0) as bigint) as lost_e6,
    cast(sum(w.list_micros * c.share_seconds // w.share_seconds) as bigint) as list_micros
  from claim as c
  join whole as w on w.cluster = c.cluster and w.node = c.node and w.use_hour = c.use_hour
  group by c.cluster, c.node, date_trunc('day', c.use_hour), c.gpu_model, c.mig_profile, c.bucket, c.run_id, c.started_at
),
floored as (
  select cluster, node, use_day, gpu_model, mig_profile, bucket, run_id, started_at, account, share_seconds, unpriced_share_seconds,
    list_micros, lost_share_seconds, (lost_e6 - (lost_e6 % 1000000 + 1000000) % 1000000) // 1000000 as lost_floor_micros,
    (exact_e6 - (exact_e6 % 1000000 + 1000000) % 1000000) // 1000000 as floor_micros,
    row_number() over (
      partition by cluster, node, use_day
      order by (exact_e6 % 1000000 + 1000000) % 1000000 desc, bucket, run_id, started_at, gpu_model, mig_profile) as turn
  from daily
),
node_day as (
  select w.cluster, w.node, w.use_day, w.cost_micros - f.floors_micros as left_micros
  from (select cluster, node, date_trunc('day', use_hour) as use_day, cast(coalesce(sum(cost_micros), 0) as bigint) as cost_micros
        from whole group by cluster, node, date_trunc('day', use_hour)) as w
  join (select cluster, node, use_day, cast(sum(floor_micros) as bigint) as floors_micros from floored
        group by cluster, node, use_day) as f on f.cluster = w.cluster and f.node = w.node and f.use_day = w.use_day
)
select f.cluster, f.node, f.use_day, f.gpu_model, f.mig_profile, f.bucket, f.run_id, f.started_at, f.account, f.share_seconds,
  f.unpriced_share_seconds, f.list_micros,
  cast(f.floor_micros + case when f.turn <= d.left_micros then 1 else 0 end as bigint) as priced_micros,
  case when f.unpriced_share_seconds = 0
    then cast(f.floor_micros + case when f.turn <= d.left_micros then 1 else 0 end as bigint) end as cost_micros,
  f.lost_share_seconds,
  cast(case when f.lost_share_seconds = f.share_seconds then f.floor_micros + case when f.turn <= d.left_micros then 1 else 0 end
    else f.lost_floor_micros end as bigint) as lost_micros
from floored as f
join node_day as d on d.cluster = f.cluster and d.node = f.node and d.use_day = f.use_day
