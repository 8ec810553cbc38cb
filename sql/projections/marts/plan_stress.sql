/*
grain: one row per recommended plan and other world
keys: [plan_id, world]
partition_by: null
units: {saving: reporting currency}
columns:
  plan_id: as in marts.plan
  world: what happens, in words
  cost: expected cost then, with the purchases
  cost_without: expected cost then, had nothing been bought
  saving: what the purchases save then; negative where they cost more
invariants: {}
*/
with version as (
  select plan_id, world, cost_micros, without_micros,
    row_number() over (partition by plan_id, world order by version_at desc, batch_id desc) as age
  from events.plan_stress_estimated
)
select plan_id, world,
  cast(cast(cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as cost,
  cast(cast(without_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as cost_without,
  cast(cast(without_micros - cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as saving
from version
where age = 1
