/*
grain: one row per owned asset
keys: [asset_id]
partition_by: null
units: {}
invariants: {}
*/
with version as (
  select asset_id, cluster, node, in_service_at, retired_at, life_months_count, purchase_amount, residual_amount, currency,
    power_watts, power_usage_effectiveness, energy_price_amount, monthly_fee_amount,
    row_number() over (partition by asset_id order by version_at desc, batch_id desc, purchase_amount) as age
  from events.asset_recorded
)
select asset_id, cluster, node, in_service_at, retired_at, life_months_count, purchase_amount, residual_amount, currency,
  power_watts, power_usage_effectiveness, energy_price_amount, monthly_fee_amount
from version
where age = 1
