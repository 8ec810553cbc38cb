/*
grain: one row per charge month
keys: [charge_month]
partition_by: null
units: {billed: reporting currency, difference: reporting currency; 0 or the month is not proved}
columns:
  charge_month: month in which the cost was incurred
  billed: what bills and the asset register charge to the month, amortised (FOCUS EffectiveCost)
  charged: borne by teams
  platform_held: held by the platform by policy
  unmatched: billed, but matching no node
  difference: billed less charged, platform_held and unmatched; must be 0
  invoiced: what the month's invoices ask for (FOCUS BilledCost) and the asset register
  prepaid: invoiced less billed, that is commitments bought in advance less what was used of them
  difference_micros: the difference in millionths; exact
invariants:
  every_month_adds_up: select charge_month, difference_micros from marts.proof_monthly where difference_micros <> 0
*/
with billed as (
  select cast(date_trunc('month', charge_period_start_at) as date) as charge_month,
    cast(sum(effective_micros) as bigint) as billed_micros, cast(sum(billed_micros) as bigint) as invoiced_micros
  from core.charge
  where effective_micros is not null
  group by cast(date_trunc('month', charge_period_start_at) as date)
),
line as (
  select charge_month,
    cast(sum(case when business_unit <> 'Platform' then cost_micros else 0 end) as bigint) as charged_micros,
    cast(sum(case when business_unit = 'Platform' and cost_kind <> 'unmatched' then cost_micros else 0 end) as bigint) as held_micros,
    cast(sum(case when business_unit = 'Platform' and cost_kind = 'unmatched' then cost_micros else 0 end) as bigint) as unmatched_micros
  from marts.chargeback_monthly
  group by charge_month
),
month as (
  select coalesce(b.charge_month, l.charge_month) as charge_month, coalesce(b.billed_micros, 0) as billed_micros,
    coalesce(b.invoiced_micros, 0) as invoiced_micros, coalesce(l.charged_micros, 0) as charged_micros,
    coalesce(l.held_micros, 0) as held_micros, coalesce(l.unmatched_micros, 0) as unmatched_micros
  from billed as b
  full join line as l on l.charge_month = b.charge_month
)
select charge_month,
  cast(cast(billed_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as billed,
  cast(cast(charged_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as charged,
  cast(cast(held_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as platform_held,
  cast(cast(unmatched_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as unmatched,
  cast(cast(billed_micros - charged_micros - held_micros - unmatched_micros as decimal(18, 0))
    * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as difference,
  cast(cast(invoiced_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as invoiced,
  cast(cast(invoiced_micros - billed_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as prepaid,
  billed_micros - charged_micros - held_micros - unmatched_micros as difference_micros
from month
