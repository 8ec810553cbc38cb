/*
grain: one row per offer, GPU model, place and stretch of time with one price
keys: [offer_id, gpu_model, region, zone, from_at]
partition_by: null
units:
  hourly_micros: per GPU-hour; NULL when nothing recurs or the exchange rate is unknown
  upfront_micros: per GPU and term; NULL when nothing is due or the exchange rate is unknown
  residual_micros: per GPU
  monthly_fee_micros: per GPU and month
  fx_rate: reporting currency for one unit of the price's currency; NULL when it is unknown
invariants:
  a_price_holds_for_a_time: select offer_id, gpu_model, region, zone, from_at from staged.price where until_at <= from_at
*/
-- A price holds from when its seller states it, else from when it was read, until the seller's end or a price read later
-- takes its place, whichever is first. One that a later reading denies from its start on never held and has no row.
-- It is converted at the rate of the month it was read in; one read after the last day known, at the last known month's.
with version as (
  select offer_id, gpu_model, region, zone, observed_at, instrument, provider, instance_type, operating_system, gpu_count,
    scope, has_capacity, term_seconds, payment_option, upfront_amount, hourly_amount, residual_amount, life_months_count,
    power_watts, monthly_fee_amount, lead_seconds, reference_gpu_quantity, currency, valid_from_at, valid_until_at,
    price_source,
    row_number() over (
      partition by offer_id, gpu_model, region, zone, observed_at
      order by version_at desc, batch_id desc, hourly_amount, upfront_amount, price_source) as age
  from events.price_observed
),
held as (
  select offer_id, gpu_model, region, zone, observed_at, instrument, provider, instance_type, operating_system, gpu_count,
    scope, has_capacity, term_seconds, payment_option, upfront_amount, hourly_amount, residual_amount, life_months_count,
    power_watts, monthly_fee_amount, lead_seconds, reference_gpu_quantity, currency, price_source,
    coalesce(valid_from_at, observed_at) as from_at,
    least(
      coalesce(valid_until_at, timestamptz '9999-01-01 00:00:00+00'),
      coalesce(min(coalesce(valid_from_at, observed_at)) over (
        partition by offer_id, gpu_model, region, zone order by observed_at rows between 1 following and unbounded following),
        timestamptz '9999-01-01 00:00:00+00')) as until_at
  from version
  where age = 1
),
priced as (
  select p.offer_id, p.gpu_model, p.region, p.zone, p.from_at, p.until_at, p.observed_at, p.instrument, p.provider,
    p.instance_type, p.operating_system, p.gpu_count, p.scope, p.has_capacity, p.term_seconds, p.payment_option,
    p.upfront_amount, p.hourly_amount, p.residual_amount, p.life_months_count, p.power_watts, p.monthly_fee_amount,
    p.lead_seconds, p.reference_gpu_quantity, p.currency, p.price_source,
    case when p.currency = l.reporting_currency then cast(1 as decimal(18, 9)) else f.fx_rate end as fx_rate
  from held as p
  cross join reference.ledger as l
  left join staged.fx_rate as f on f.currency = p.currency
    and f.rate_month = cast(date_trunc('month', least(p.observed_at, l.known_until_at - interval 1 second)) as date)
  where p.until_at > p.from_at
)
select offer_id, gpu_model, region, zone, from_at, until_at, observed_at, instrument, provider, instance_type,
  operating_system, gpu_count, scope, has_capacity, term_seconds, payment_option,
  cast(round(cast(upfront_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as upfront_micros,
  cast(round(cast(hourly_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as hourly_micros,
  cast(round(cast(residual_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as residual_micros,
  life_months_count, power_watts,
  cast(round(cast(monthly_fee_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as monthly_fee_micros,
  lead_seconds, reference_gpu_quantity, currency, fx_rate, price_source
from priced
