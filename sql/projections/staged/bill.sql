/*
grain: one row per bill, in the content of its newest delivery
keys: [issuer, billing_account_id, billing_period_month]
partition_by: null
units: {fx_rate: reporting currency for one unit}
invariants: {}
*/
with version as (
  select issuer, billing_account_id, billing_period_month, content_id, line_count, billed_amount, effective_amount, currency,
    focus_version, version_at,
    row_number() over (
      partition by issuer, billing_account_id, billing_period_month order by version_at desc, batch_id desc, content_id
    ) as age
  from events.bill_delivered
)
select issuer, billing_account_id, billing_period_month, content_id, line_count, billed_amount, effective_amount,
  currency, focus_version, version_at as delivered_at
from version
where age = 1
