/*
grain: one row per line of a bill in force, in the reporting currency
keys: [content_id, line_digest, line_ordinal, issuer, billing_account_id, billing_period_month]
partition_by: charge_period_start_at
units: {effective_micros: NULL when the month's exchange rate is unknown, billed_micros: NULL when it is unknown}
invariants: {}
*/
with line as (
  select content_id, line_digest, line_ordinal, issuer, billing_account_id, billing_period_month, invoice_id, provider,
    sub_account_id, charge_category, charge_class, charge_description, charge_period_start_at, charge_period_end_at,
    service_category, service_name, sku_id, region_id, resource_id, resource_name, pricing_category, pricing_quantity,
    pricing_unit, consumed_quantity, commitment_discount_id, commitment_discount_status, billed_amount, effective_amount,
    list_amount, contracted_amount, currency,
    row_number() over (
      partition by content_id, line_digest, line_ordinal, issuer, billing_account_id, billing_period_month
      order by version_at desc, batch_id desc) as age
  from events.charge_billed
  where charge_period_start_at >= $start and charge_period_start_at < $end
),
priced as (
  select c.content_id, c.line_digest, c.line_ordinal, c.issuer, c.billing_account_id, c.billing_period_month, c.invoice_id,
    c.provider, c.sub_account_id, c.charge_category, c.charge_class, c.charge_description, c.charge_period_start_at,
    c.charge_period_end_at, c.service_category, c.service_name, c.sku_id, c.region_id, c.resource_id, c.resource_name,
    c.pricing_category, c.pricing_quantity, c.pricing_unit, c.consumed_quantity, c.commitment_discount_id,
    c.commitment_discount_status, c.billed_amount, c.effective_amount, c.list_amount, c.contracted_amount, c.currency,
    case when c.currency = l.reporting_currency then cast(1 as decimal(18, 9)) else f.fx_rate end as fx_rate
  from line as c
  join staged.bill as b on b.content_id = c.content_id and b.issuer = c.issuer
    and b.billing_account_id = c.billing_account_id and b.billing_period_month = c.billing_period_month
  cross join reference.ledger as l
  left join staged.fx_rate as f on f.currency = c.currency and f.rate_month = c.billing_period_month
  where c.age = 1
)
select content_id, line_digest, line_ordinal, issuer, billing_account_id, billing_period_month, invoice_id, provider,
  sub_account_id, charge_category, charge_class, charge_description, charge_period_start_at, charge_period_end_at,
  service_category, service_name, sku_id, region_id, resource_id, resource_name, pricing_category, pricing_quantity,
  pricing_unit, consumed_quantity, commitment_discount_id, commitment_discount_status, currency, fx_rate, billed_amount,
  effective_amount,
  cast(round(cast(billed_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as billed_micros,
  cast(round(cast(effective_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as effective_micros,
  cast(round(cast(list_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as list_micros,
  cast(round(cast(contracted_amount as decimal(28, 10)) * fx_rate * 1000000) as bigint) as contracted_micros
from priced
