/*
grain: one row per line of a recommended plan
keys: [plan_id, line]
partition_by: null
units: {cost: reporting currency}
columns:
  plan_id: as in marts.plan
  line: position, counted from 1
  line_kind: purchase, held (already), spot, on_demand or shortfall
  offer_id: of a purchase, the offer in the price book
  pool: demand that it serves; several are parted by commas
  starts_at: start of the term, or of the horizon
  ends_at: end of the term, or of the horizon (exclusive)
  gpu_count: GPUs to buy; NULL of a commitment in money
  hourly_commitment: money committed for each hour; NULL of GPUs
  gpu_hours: expected GPU-hours that it serves; NULL of a purchase
  cost: expected discounted cost within the horizon
  upfront: of a purchase, paid at its start
  committed: of a purchase, all that it obliges to pay over its term, undiscounted
  break_even_ratio: part of the hours in which the last unit must be used to pay
  used_ratio: part of the hours in which the last unit is expected to be used
  reason: why, in one sentence
invariants:
  lines_add_up_to_the_plan: |
    select p.plan_id from events.plan_recommended as p
    left join (select plan_id, sum(cost) as cost from marts.plan_line group by plan_id) as l on l.plan_id = p.plan_id
    where coalesce(l.cost, 0) * 1000000 <> p.expected_cost_micros
*/
with version as (
  select plan_id, line, line_kind, offer_id, pool, starts_at, ends_at, gpu_count, hourly_commitment_micros, gpu_hours_quantity,
    cost_micros, upfront_micros, committed_micros, break_even_ratio, used_ratio, reason,
    row_number() over (partition by plan_id, line order by version_at desc, batch_id desc) as age
  from events.plan_line_recommended
)
select plan_id, line, line_kind, offer_id, pool, starts_at, ends_at, gpu_count,
  cast(cast(hourly_commitment_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as hourly_commitment,
  cast(gpu_hours_quantity as decimal(18, 4)) as gpu_hours,
  cast(cast(cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as cost,
  cast(cast(upfront_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as upfront,
  cast(cast(committed_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as committed,
  break_even_ratio, used_ratio, reason
from version
where age = 1
