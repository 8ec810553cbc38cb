/*
grain: one row per offer, GPU model, place and stretch of time with one price, from price files, APIs and the bills
keys: [offer_id, gpu_model, region, zone, from_at]
partition_by: null
stored: view
units:
  hourly_micros: per GPU-hour; NULL when nothing recurs or the exchange rate is unknown
  upfront_micros: per GPU and term
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
