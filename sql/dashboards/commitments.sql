-- Commitments that are held or queued, with what each obliges to pay an hour (upfront money spread over the term), and how
-- many GPUs come back to demand when it ends: its own, or those that its money buys at the rate of its offer.
with rate as (
  select offer_id, min(hourly_micros) as low_micros, max(hourly_micros) as high_micros, count(distinct gpu_model) as model_count
  from core.offer
  where until_at is null or until_at > $at
  group by offer_id
)
select commitment_id, short_id, instrument, provider, gpu_model, starts_at, ends_at, gpu_count, covers_gpus, hourly_cost_micros,
  cast(hourly_cost_micros * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as hourly_cost, has_capacity, state
from (
  select c.commitment_id, left(regexp_extract(c.commitment_id, '[^/:]+$'), 10) as short_id, c.instrument, c.provider, c.gpu_model, c.starts_at, c.ends_at,
    c.gpu_count,
    cast(coalesce(cast(c.gpu_count as double), case when r.model_count = 1 and r.low_micros = r.high_micros
      then cast(c.hourly_commitment_micros as double) / r.low_micros end) as double) as covers_gpus,
    cast(round(coalesce(c.hourly_commitment_micros, c.gpu_count * c.hourly_micros, case when c.upfront_micros is not null then 0 end)
      + coalesce(c.upfront_micros, 0) * 3600.0 / date_diff('second', c.starts_at, c.ends_at)) as bigint) as hourly_cost_micros,
    c.has_capacity, c.state
  from staged.commitment as c
  left join rate as r on r.offer_id = c.offer_id
  where c.state <> 'cancelled' and c.ends_at > $at
)
order by ends_at, commitment_id
