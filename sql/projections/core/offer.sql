/*
grain: one row per offer, GPU model, place and stretch of time with one price, from price files, APIs and the bills
keys: [offer_id, gpu_model, region, zone, from_at]
partition_by: null
stored: view
units: {}
columns:
  offer_id: stable name of the offer, such as aws/us-east-1/p5.48xlarge/on_demand
  gpu_model: canonical GPU model
  region: "region as the provider names it; empty: any"
  zone: "availability zone; empty: any"
  from_at: the price holds from
  until_at: the price holds until (exclusive)
  observed_at: when the price was read; of a price that the bill shows, the day
  instrument: on_demand, reserved, savings_plan, committed_use, capacity_block, spot, contract or owned
  provider: "who sells it: aws, gcp, azure, a neocloud, a manufacturer"
  instance_type: instance or machine type; NULL where the price is of a bare GPU or any type
  operating_system: operating system that the price includes
  gpu_count: "GPUs of one instance or node: what is bought at least"
  scope: "where it holds: zone, region, family or global"
  has_capacity: whether it reserves capacity (zonal reservation, capacity block, owned, contract), not only a price
  term_seconds: "length of the commitment: 31,536,000 (1 year), 94,608,000 (3 years), a block"
  payment_option: no_upfront, partial_upfront or all_upfront
  upfront_micros: paid at the start, per GPU and for the whole term; NULL when nothing is due or the exchange rate is unknown
  hourly_micros: recurring per GPU-hour; NULL when nothing recurs or the exchange rate is unknown
  residual_micros: "owned: value per GPU at the end of its life"
  life_months_count: "owned: months of use"
  power_watts: "owned: power per GPU, at the wall, its share of the node included"
  monthly_fee_micros: "owned: fees per GPU and month"
  lead_seconds: from order to use
  reference_gpu_quantity: "reference GPUs that one of these is worth: relative performance"
  price_source: "where the price was read; bill: what the bills show"
invariants: {}
*/
-- What the bill shows of a price holds from that day until the next day that shows it.
select offer_id, gpu_model, region, zone, from_at, until_at, observed_at, instrument, provider, instance_type,
  operating_system, gpu_count, scope, has_capacity, term_seconds, payment_option, upfront_micros, hourly_micros,
  residual_micros, life_months_count, power_watts, monthly_fee_micros, lead_seconds, reference_gpu_quantity, price_source
from staged.price
union all
select concat_ws('/', 'bill', provider, region, gpu_model, cast(gpu_count as varchar), instrument), gpu_model, region, '',
  price_day,
  coalesce(lead(price_day) over (partition by provider, region, gpu_model, gpu_count, instrument order by price_day),
    timestamptz '9999-01-01 00:00:00+00'),
  price_day, instrument, provider, null, null, gpu_count, case when region = '' then 'global' else 'region' end, false, null,
  null, null, hourly_micros, null, null, null, null, null, null, 'bill'
from core.billed_price
