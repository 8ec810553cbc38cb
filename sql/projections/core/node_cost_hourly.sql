/*
grain: one row per node and hour with a cost
keys: [cluster, node, use_hour]
partition_by: use_hour
units: {cost_micros: amortised cost of the node in the hour, list_micros: the same at list price}
invariants: {}
*/
-- A charge is laid on the hours of its period in which the node existed, by cumulative rounding: the part up to an hour is
-- the whole times the seconds up to it over all seconds, rounded down, so the hours add up to the charge exactly.
with presence as (
  select distinct cluster, node, from_at, until_at from staged.gpu_inventory
),
charge as (
  select c.charge_id, c.cluster, c.node, c.charge_period_start_at, c.charge_period_end_at, abs(c.effective_micros) as size_micros,
    sign(c.effective_micros) as direction, abs(c.list_micros) as list_size_micros, sign(c.list_micros) as list_direction
  from core.charge as c
  where c.placed_as = 'node' and c.effective_micros is not null
    and c.charge_period_start_at < $end and c.charge_period_end_at > $start
),
piece as (
  select c.charge_id, c.cluster, c.node, c.size_micros, c.direction, c.list_size_micros, c.list_direction,
    greatest(c.charge_period_start_at, p.from_at) as from_at, least(c.charge_period_end_at, p.until_at) as until_at
  from charge as c
  join presence as p on p.cluster = c.cluster and p.node = c.node
    and p.from_at < c.charge_period_end_at and p.until_at > c.charge_period_start_at
),
laid as (
  select charge_id, cluster, node, size_micros, direction, list_size_micros, list_direction, from_at, until_at,
    cast(sum(date_diff('second', from_at, until_at)) over (partition by charge_id) as bigint) as whole_seconds,
    cast(coalesce(sum(date_diff('second', from_at, until_at)) over (
      partition by charge_id order by from_at rows between unbounded preceding and 1 preceding), 0) as bigint) as before_seconds
  from piece
),
hourly as (
  select l.cluster, l.node, h.use_hour, l.size_micros, l.direction, l.list_size_micros, l.list_direction, l.whole_seconds,
    l.before_seconds + date_diff('second', l.from_at, greatest(l.from_at, h.use_hour)) as from_seconds,
    l.before_seconds + date_diff('second', l.from_at, least(l.until_at, h.use_hour + interval 1 hour)) as until_seconds
  from laid as l
  join reference.hour as h on h.use_hour < l.until_at and h.use_hour + interval 1 hour > l.from_at
  where h.use_hour >= $start and h.use_hour < $end and l.whole_seconds > 0
)
select cluster, node, use_hour,
  cast(sum(direction * (cast(size_micros as hugeint) * until_seconds // whole_seconds
    - cast(size_micros as hugeint) * from_seconds // whole_seconds)) as bigint) as cost_micros,
  cast(sum(list_direction * (cast(list_size_micros as hugeint) * until_seconds // whole_seconds
    - cast(list_size_micros as hugeint) * from_seconds // whole_seconds)) as bigint) as list_micros
from hourly
group by cluster, node, use_hour
