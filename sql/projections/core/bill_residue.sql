/*
grain: one row per bill
keys: [bill]
partition_by: null
units: {effective_residue_micros: the exact total rounded once less the sum of the lines rounded one by one}
invariants: {}
*/
select concat_ws('/', issuer, billing_account_id, strftime(billing_period_month, '%Y-%m')) as bill,
  cast(billing_period_month as timestamptz) as charge_period_start_at,
  cast(billing_period_month as timestamptz) + interval 1 day as charge_period_end_at,
  cast(count(*) as bigint) as line_count,
  cast(sum(case when fx_rate is null then 1 else 0 end) as bigint) as unpriced_count,
  cast(sum(billed_micros) as bigint) as billed_lines_micros,
  cast(sum(effective_micros) as bigint) as effective_lines_micros,
  cast(round(cast(sum(case when fx_rate is not null then billed_amount end) as decimal(28, 10)) * max(fx_rate) * 1000000)
    - sum(billed_micros) as bigint) as billed_residue_micros,
  cast(round(cast(sum(case when fx_rate is not null then effective_amount end) as decimal(28, 10)) * max(fx_rate) * 1000000)
    - sum(effective_micros) as bigint) as effective_residue_micros
from staged.charge
group by issuer, billing_account_id, billing_period_month
having count(distinct currency) = 1
