/*
grain: one row per day, payer and kind of cost
keys: [cost_day, cluster, business_unit, team, project, cost_kind]
partition_by: cost_day
units: {cost_micros: what the payer bears}
invariants:
  pools_are_distributed_whole: |
    select p.cost_day, p.cost_micros, l.cost_micros as distributed
    from (select cost_day, sum(coalesce(cost_micros, 0)) as cost_micros from core.pool_daily group by cost_day) as p
    left join (select cost_day, sum(coalesce(cost_micros, 0)) as cost_micros from core.line_daily where cost_kind <> 'usage'
               group by cost_day) as l on l.cost_day = p.cost_day
    where coalesce(l.cost_micros, 0) <> p.cost_micros
*/
-- Who pays a pool is a dated policy; every policy is zero-sum: the pool is split whole by largest remainder, and where
-- nobody has a weight it stays with the platform. Lost work may also stay with whoever owns the run: then each bears what
-- was lost of their own.
with pool as (
  select p.cost_day, p.cluster, p.pool, p.share_seconds, p.cost_micros, coalesce(y.value, d.value) as policy
  from core.pool_daily as p
  left join staged.policy as y on y.policy = 'distribute' and y.subject = p.pool and y.from_at < p.cost_day + interval 1 day
    and y.until_at >= p.cost_day + interval 1 day
  join reference.policy_default as d on d.policy = 'distribute'
  where p.cost_day >= $start and p.cost_day < $end
),
payer as (
  select distinct business_unit, team, project, from_at, until_at from staged.ownership
),
weight as (
  select p.cost_day, p.cluster, p.pool, o.business_unit, o.team, o.project, o.share_seconds as weight
  from pool as p
  join core.owner_daily as o on o.use_day = p.cost_day and (p.cluster = '' or o.cluster = p.cluster)
  where p.policy = 'proportional'
  union all
  select distinct p.cost_day, p.cluster, p.pool, o.business_unit, o.team, o.project, 1
  from pool as p
  join payer as o on o.from_at < p.cost_day + interval 1 day and o.until_at >= p.cost_day + interval 1 day
  where p.policy = 'even'
  union all
  select distinct p.cost_day, p.cluster, p.pool, o.business_unit, o.team, '', cast(w.value as bigint)
  from pool as p
  join staged.policy as w on w.policy = 'fixed_weight' and w.from_at < p.cost_day + interval 1 day
    and w.until_at >= p.cost_day + interval 1 day
  join payer as o on o.team = w.subject and o.from_at < p.cost_day + interval 1 day and o.until_at >= p.cost_day + interval 1 day
  where p.policy = 'fixed'
),
claim as (
  select cost_day, cluster, pool, business_unit, team, project, cast(sum(weight) as bigint) as weight
  from weight
  where weight > 0
  group by cost_day, cluster, pool, business_unit, team, project
),
share as (
  select p.cost_day, p.cluster, p.pool, c.business_unit, c.team, c.project, c.weight, abs(p.cost_micros) as size_micros,
    sign(p.cost_micros) as direction, p.share_seconds,
    cast(sum(c.weight) over (partition by p.cost_day, p.cluster, p.pool) as bigint) as whole_weight
  from pool as p
  join claim as c on c.cost_day = p.cost_day and c.cluster = p.cluster and c.pool = p.pool
  where p.cost_micros is not null
),
ranked as (
  select cost_day, cluster, pool, business_unit, team, project, size_micros, direction,
    cast(cast(size_micros as hugeint) * weight // whole_weight as bigint) as floor_micros,
    row_number() over (
      partition by cost_day, cluster, pool
      order by cast(size_micros as hugeint) * weight % whole_weight desc, business_unit, team, project) as turn
  from share
),
settled as (
  select cost_day, cluster, pool, business_unit, team, project, direction, floor_micros, turn, size_micros,
    cast(sum(floor_micros) over (partition by cost_day, cluster, pool) as bigint) as floors_micros
  from ranked
)
select cost_day, cluster, business_unit, team, project, pool as cost_kind, 0 as share_seconds, 0 as idle_share_seconds,
  0 as unmeasured_share_seconds, 0 as unpriced_share_seconds,
  cast(direction * (floor_micros + case when turn <= size_micros - floors_micros then 1 else 0 end) as bigint) as cost_micros
from settled
union all
select p.cost_day, p.cluster, o.business_unit, o.team, o.project, p.pool, 0, 0, 0, 0, o.lost_micros
from pool as p
join core.owner_daily as o on o.use_day = p.cost_day and o.cluster = p.cluster
where p.pool = 'lost_work' and p.policy = 'owner' and o.lost_micros <> 0
union all
select p.cost_day, p.cluster, 'Platform', 'platform', '', p.pool, p.share_seconds, 0, 0,
  case when p.cost_micros is null then p.share_seconds else 0 end,
  case when p.pool = 'lost_work' and p.policy = 'owner'
    or exists (select 1 from claim as c where c.cost_day = p.cost_day and c.cluster = p.cluster and c.pool = p.pool)
    then 0 else p.cost_micros end
from pool as p
union all
select use_day, cluster, business_unit, team, project, 'usage', share_seconds, idle_share_seconds, unmeasured_share_seconds,
  unpriced_share_seconds, cost_micros
from core.owner_daily
where use_day >= $start and use_day < $end
