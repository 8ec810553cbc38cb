/*
grain: one row per bill (or owned cluster) and month
keys: [bill]
partition_by: null
units: {effective: reporting currency, difference: reporting currency; 0 or the bill is not proved}
columns:
  bill: issuer, billing account and billing period; owned, cluster and month for owned assets
  delivered_at: when the delivery in force was made; NULL for owned assets
  line_count: lines placed, parts of lines that span months counted apart
  effective: amortised cost of the bill, its own total rounded once
  on_nodes: placed on nodes
  unused_commitment: commitment paid for and not used
  shared: a cluster's shared assets
  unmatched: matching no node
  difference: effective less its placed parts; must be 0
  difference_micros: the difference in millionths; exact
invariants:
  every_bill_adds_up: select bill, difference_micros from marts.proof_by_bill where difference_micros <> 0
*/
with placed as (
  select bill, cast(count(*) as bigint) as line_count, cast(sum(effective_micros) as bigint) as placed_micros,
    cast(sum(case when placed_as = 'node' then effective_micros else 0 end) as bigint) as node_micros,
    cast(sum(case when placed_as = 'unused_commitment' then effective_micros else 0 end) as bigint) as unused_micros,
    cast(sum(case when placed_as = 'shared' then effective_micros else 0 end) as bigint) as shared_micros,
    cast(sum(case when placed_as = 'unmatched' then effective_micros else 0 end) as bigint) as unmatched_micros
  from core.charge
  where effective_micros is not null
  group by bill
),
stated as (
  select concat_ws('/', b.issuer, b.billing_account_id, strftime(b.billing_period_month, '%Y-%m')) as bill, b.delivered_at,
    cast(round(cast(b.effective_amount as decimal(28, 10))
      * case when b.currency = l.reporting_currency then cast(1 as decimal(18, 9)) else f.fx_rate end * 1000000) as bigint)
      as stated_micros
  from staged.bill as b
  cross join reference.ledger as l
  left join staged.fx_rate as f on f.currency = b.currency and f.rate_month = b.billing_period_month
)
select p.bill, s.delivered_at, p.line_count,
  cast(cast(coalesce(s.stated_micros, p.placed_micros) as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as effective,
  cast(cast(p.node_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as on_nodes,
  cast(cast(p.unused_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as unused_commitment,
  cast(cast(p.shared_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as shared,
  cast(cast(p.unmatched_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as unmatched,
  cast(cast(coalesce(s.stated_micros, p.placed_micros) - p.node_micros - p.unused_micros - p.shared_micros - p.unmatched_micros
    as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as difference,
  coalesce(s.stated_micros, p.placed_micros) - p.node_micros - p.unused_micros - p.shared_micros - p.unmatched_micros
    as difference_micros
from placed as p
left join stated as s on s.bill = p.bill
