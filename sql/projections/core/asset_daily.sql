/*
grain: one row per owned asset and day in service
keys: [asset_id, cost_day]
partition_by: cost_day
units: {cost_micros: depreciation plus power plus fees of the day}
invariants: {}
*/
-- Straight line by month; a month's amount is laid on its days in service by cumulative rounding, so the days add up to the month
-- and the months to the asset's cost less its residual value, to the micro. What is left when an asset is retired is
-- charged on its last day in service.
with asset as (
  select a.asset_id, a.cluster, a.node, coalesce(a.retired_at, timestamptz '9999-01-01 00:00:00+00') as retired_at,
    a.life_months_count, a.currency,
    date_trunc('day', a.in_service_at) as first_day, cast(date_trunc('month', a.in_service_at) as date) as first_month,
    cast(round(cast(a.purchase_amount - a.residual_amount as decimal(28, 10)) * 1000000) as bigint) as value_e6,
    cast(round(cast(coalesce(a.monthly_fee_amount, 0) as decimal(28, 10)) * 1000000) as bigint) as fee_e6,
    cast(round(a.power_watts * coalesce(cast(a.power_usage_effectiveness as double), 1) * 24 * cast(a.energy_price_amount as double) * 1000) as bigint)
      as energy_day_e6
  from staged.asset as a
),
day as (
  select a.asset_id, a.cluster, a.node, a.currency, a.value_e6, a.fee_e6, a.energy_day_e6, a.life_months_count,
    a.retired_at, d.cost_day,
    date_diff('month', cast(a.first_month as timestamp), cast(date_trunc('month', d.cost_day) as timestamp)) as month_number,
    date_diff('day', cast(greatest(date_trunc('month', d.cost_day), a.first_day) as timestamp), cast(d.cost_day as timestamp)) as day_number,
    date_diff('day', cast(greatest(date_trunc('month', d.cost_day), a.first_day) as timestamp),
      cast(date_trunc('month', d.cost_day) + interval 1 month as timestamp)) as month_days
  from asset as a
  join reference.day as d on d.cost_day >= a.first_day and d.cost_day < a.retired_at
  where d.cost_day >= $start and d.cost_day < $end
),
monthly as (
  select asset_id, cluster, node, currency, cost_day, day_number, month_days, energy_day_e6, retired_at, value_e6,
    case when month_number < life_months_count then value_e6 * (month_number + 1) // life_months_count - value_e6 * month_number // life_months_count
      else 0 end as depreciation_month_e6,
    value_e6 * least(month_number + 1, life_months_count) // life_months_count as depreciated_e6,
    fee_e6
  from day
),
daily as (
  select asset_id, cluster, node, currency, cost_day,
    depreciation_month_e6 * (day_number + 1) // month_days - depreciation_month_e6 * day_number // month_days
      + fee_e6 * (day_number + 1) // month_days - fee_e6 * day_number // month_days
      + coalesce(energy_day_e6, 0)
      + case when cost_day + interval 1 day >= retired_at
          then value_e6 - depreciated_e6
            + depreciation_month_e6 - depreciation_month_e6 * (day_number + 1) // month_days
        else 0 end as cost_e6
  from monthly
)
select d.asset_id, d.cluster, d.node, d.cost_day, 'Depreciation, power and fees' as cost_kinds, d.currency,
  case
    when d.currency = l.reporting_currency then cast(d.cost_e6 as bigint)
    else cast(round(cast(d.cost_e6 as decimal(18, 0)) * f.fx_rate) as bigint)
  end as cost_micros
from daily as d
cross join reference.ledger as l
left join staged.fx_rate as f on f.currency = d.currency and f.rate_month = cast(date_trunc('month', d.cost_day) as date)
