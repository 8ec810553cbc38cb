-- The price book as it is in force at an instant, for one GPU model or all.
select offer_id, gpu_model, region, zone, instrument, provider, gpu_count, scope, has_capacity, term_seconds, payment_option,
  upfront_micros, hourly_micros, residual_micros, life_months_count, power_watts, monthly_fee_micros, lead_seconds,
  reference_gpu_quantity, observed_at, from_at, until_at, price_source
from core.offer
where ($model is null or gpu_model = $model) and from_at <= $at and (until_at is null or until_at > $at)
order by gpu_model, provider, instrument, offer_id, region, zone
