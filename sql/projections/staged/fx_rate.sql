/*
grain: one row per currency and month
keys: [currency, rate_month]
partition_by: null
units: {fx_rate: reporting currency for one unit}
invariants: {}
*/
with version as (
  select currency, reporting_currency, cast(observed_at as date) as rate_month, fx_rate,
    row_number() over (
      partition by currency, reporting_currency, cast(observed_at as date) order by version_at desc, batch_id desc, fx_rate
    ) as age
  from events.fx_rate_observed
)
select v.currency, v.rate_month, v.fx_rate
from version as v
join reference.ledger as l on l.reporting_currency = v.reporting_currency
where v.age = 1 and v.currency <> l.reporting_currency
