/*
grain: one row per commitment bought or queued
keys: [commitment_id]
partition_by: null
units: {}
columns:
  commitment_id: the provider's id of the reservation, plan, block or contract
  instrument: as in price_observed
  provider: who sold it
  offer_id: offer it was bought from, as in price_observed
  region: "region; NULL: any"
  zone: "availability zone; NULL: any"
  gpu_model: "canonical GPU model; NULL: money an hour over several models"
  instance_type: "instance or machine type it is for; NULL: any"
  scope: "where it applies: zone, region, family or global"
  has_capacity: whether it reserves capacity, not only a price
  starts_at: in force from
  ends_at: in force until (exclusive)
  gpu_count: GPUs committed to; NULL of a commitment in money
  hourly_commitment_micros: money an hour committed to; NULL of a commitment to GPUs or when the exchange rate is unknown
  hourly_micros: recurring per GPU-hour
  upfront_micros: paid at the start, in total
  payment_option: no_upfront, partial_upfront or all_upfront
  currency: ISO 4217 code of the amounts as they were recorded
  fx_rate: reporting currency for one unit of the commitment's currency; NULL when it is unknown
  state: active, queued or cancelled
invariants:
  ends_after_it_starts: select commitment_id from staged.commitment where ends_at <= starts_at
*/
-- Converted at the rate of the month it starts in; one that starts after the last day known, at the last known month's.
with version as (
  select commitment_id, instrument, provider, offer_id, region, zone, gpu_model, instance_type, scope, has_capacity,
    starts_at, ends_at, gpu_count, hourly_commitment_amount, hourly_amount, upfront_amount, payment_option, currency, state,
    row_number() over (
      partition by commitment_id order by version_at desc, batch_id desc, starts_at, ends_at, state) as age
  from events.commitment_recorded
),
priced as (
  select c.commitment_id, c.instrument, c.provider, c.offer_id, c.region, c.zone, c.gpu_model, c.instance_type, c.scope,
    c.has_capacity, c.starts_at, c.ends_at, c.gpu_count, c.hourly_commitment_amount, c.hourly_amount, c.upfront_amount,
    c.payment_option, c.currency, c.state,
    case when c.currency = l.reporting_currency then cast(1 as decimal(18, 9)) else f.fx_rate end as fx_rate
  from version as c
  cross join reference.ledger as l
  left join staged.fx_rate as f on f.currency = c.currency
    and f.rate_month = cast(date_trunc('month', least(c.starts_at, l.known_until_at - interval 1 second)) as date)
  where c.age = 1
)
select commitment_id, instrument, provider, offer_id, region, zone, gpu_model, instance_type, scope, has_capacity, starts_at,
  ends_at, gpu_count,
  cast(round(cast(hourly_commitment_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as hourly_commitment_micros,
  cast(round(cast(hourly_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as hourly_micros,
  cast(round(cast(upfront_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as upfront_micros,
  payment_option, currency, fx_rate, state
from priced
