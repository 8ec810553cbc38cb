/*
grain: one row per day, provider, region, GPU model, size of node and instrument whose price the bill shows
keys: [price_day, provider, region, gpu_model, gpu_count, instrument]
partition_by: price_day
units:
  hourly_micros: per GPU-hour, the mean of the day's lines weighed by their hours, rounded to the nearest micro
  used_gpu_micro_hours: millionths of a GPU-hour that the mean is of
invariants:
  a_price_is_of_some_time: select price_day, provider, region, gpu_model from core.billed_price where used_gpu_micro_hours <= 0
*/
-- Of lines that bill a known node by the hour. On demand: the list cost of what was used at the standard price or under a
-- commitment, since list cost is before all discounts. Spot: what was billed, since its list cost is the on-demand price.
-- What commitments cost is not taken for a price: it is one only as long as they are used.
with node as (
  select cluster, node, from_at, until_at, resource_id, min(gpu_model) as gpu_model, cast(sum(card_count) as bigint) as gpu_count
  from (
    select distinct cluster, node, from_at, until_at, resource_id, gpu_model, mig_layout, card_count from staged.gpu_inventory
  ) as layout
  group by cluster, node, from_at, until_at, resource_id
  having count(distinct gpu_model) = 1
),
named as (
  select coalesce(resource_id, node) as resource, from_at, until_at, gpu_model, gpu_count from node
  union
  select node, from_at, until_at, gpu_model, gpu_count from node
),
line as (
  select date_trunc('day', charge_period_start_at) as price_day, charge_period_start_at, issuer, content_id, line_digest,
    line_ordinal, lower(coalesce(provider, issuer)) as provider, coalesce(region_id, '') as region, resource_id, resource_name,
    case when pricing_category = 'Dynamic' then 'spot' else 'on_demand' end as instrument,
    case when pricing_category = 'Dynamic' then billed_micros else list_micros end as price_micros,
    cast(round(coalesce(pricing_quantity, consumed_quantity) * 1000000) as bigint) as micro_hours
  from staged.charge
  where charge_period_start_at >= $start and charge_period_start_at < $end
    and charge_category = 'Usage' and charge_class is null and lower(pricing_unit) in ('hour', 'hours', 'hr', 'hrs')
    and (pricing_category in ('Standard', 'Dynamic') or pricing_category = 'Committed' and commitment_discount_status = 'Used')
),
matched as (
  select l.price_day, l.provider, l.region, l.instrument, l.price_micros, l.micro_hours, n.gpu_model, n.gpu_count,
    row_number() over (
      partition by l.issuer, l.content_id, l.line_digest, l.line_ordinal order by n.from_at, n.gpu_model, n.gpu_count) as preference
  from line as l
  join named as n on n.resource in (l.resource_id, l.resource_name)
    and n.from_at <= l.charge_period_start_at and n.until_at > l.charge_period_start_at
  where l.price_micros > 0 and l.micro_hours > 0
),
summed as (
  select price_day, provider, region, gpu_model, gpu_count, instrument, cast(sum(price_micros) as hugeint) as price_micros,
    cast(sum(micro_hours * gpu_count) as hugeint) as gpu_micro_hours
  from matched
  where preference = 1
  group by price_day, provider, region, gpu_model, gpu_count, instrument
)
select price_day, provider, region, gpu_model, gpu_count, instrument,
  cast((price_micros * 2000000 + gpu_micro_hours) // (gpu_micro_hours * 2) as bigint) as hourly_micros,
  cast(gpu_micro_hours as bigint) as used_gpu_micro_hours
from summed
