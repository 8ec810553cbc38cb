/*
grain: one row per day, cluster and pool of costs that no run caused directly, or whose work was lost
keys: [cost_day, cluster, pool]
partition_by: cost_day
units: {cost_micros: cost of the pool, share_seconds: GPU time of the pool; 0 where it has none or runs held it}
invariants: {}
*/
-- A charge that is not on a node is laid on the days of its period by cumulative rounding, like a node's charge on hours.
with charge as (
  select charge_id, coalesce(cluster, '') as cluster, placed_as as pool, abs(effective_micros) as size_micros,
    sign(effective_micros) as direction, charge_period_start_at as from_at, charge_period_end_at as until_at
  from core.charge
  where placed_as <> 'node' and effective_micros is not null and charge_period_start_at < $end and charge_period_end_at > $start
),
daily as (
  select d.cost_day, c.cluster, c.pool, c.size_micros, c.direction,
    date_diff('second', c.from_at, c.until_at) as whole_seconds,
    date_diff('second', c.from_at, greatest(c.from_at, d.cost_day)) as from_seconds,
    date_diff('second', c.from_at, least(c.until_at, d.cost_day + interval 1 day)) as until_seconds
  from charge as c
  join reference.day as d on d.cost_day < c.until_at and d.cost_day + interval 1 day > c.from_at
  where d.cost_day >= $start and d.cost_day < $end
),
part as (
  select cost_day, cluster, pool, 0 as share_seconds,
    cast(direction * (cast(size_micros as hugeint) * until_seconds // whole_seconds
      - cast(size_micros as hugeint) * from_seconds // whole_seconds) as bigint) as cost_micros
  from daily
  union all
  select use_day, cluster, bucket, share_seconds, case when share_seconds > unpriced_share_seconds then priced_micros end
  from core.cost_daily
  where bucket <> 'allocated' and use_day >= $start and use_day < $end
  union all
  select use_day, cluster, 'lost_work', 0, lost_micros
  from core.cost_daily
  where lost_micros <> 0 and use_day >= $start and use_day < $end
)
select cost_day, cluster, pool, cast(sum(share_seconds) as bigint) as share_seconds, cast(sum(cost_micros) as bigint) as cost_micros
from part
group by cost_day, cluster, pool
