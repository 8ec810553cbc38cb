/*
grain: one row per charge and calendar month that the ledger must place (bill line, owned asset day, rounding residue)
keys: [charge_id]
partition_by: charge_period_start_at
units: {effective_micros: amortised cost, billed_micros: invoiced cost}
invariants:
  a_charge_has_a_place: select charge_id from core.charge where placed_as not in ('node', 'shared', 'unmatched', 'unused_commitment')
*/
-- A charge that spans months is cut at their bounds, by cumulative rounding. A line belongs to the node whose resource id or name it names. Unused commitment is its own pool, an asset without a
-- node is its cluster's shared cost, and everything else stays visible as unmatched: an asset whose node is not there that day too.
with named as (
  select distinct cluster, node, from_at, until_at, coalesce(resource_id, node) as resource from staged.gpu_inventory
  union
  select distinct cluster, node, from_at, until_at, node from staged.gpu_inventory
),
line as (
  select concat_ws('/', c.issuer, c.billing_account_id, c.content_id, c.line_digest, cast(c.line_ordinal as varchar)) as line_id,
    concat_ws('/', c.issuer, c.billing_account_id, strftime(c.billing_period_month, '%Y-%m')) as bill,
    c.charge_period_start_at, c.charge_period_end_at, c.charge_category, c.commitment_discount_status, c.charge_description,
    c.service_category, c.service_name, c.resource_id, c.resource_name, c.effective_micros, c.billed_micros, c.list_micros,
    date_diff('second', c.charge_period_start_at, c.charge_period_end_at) as whole_seconds,
    unnest(generate_series(
      date_trunc('month', c.charge_period_start_at), c.charge_period_end_at - interval 1 second, interval 1 month)) as part_month
  from staged.charge as c
  where c.charge_period_start_at < $end and c.charge_period_end_at > $start
),
bounded as (
  select line_id, bill, charge_category, commitment_discount_status, charge_description, service_category, service_name, resource_id,
    resource_name, effective_micros, billed_micros, list_micros, whole_seconds,
    greatest(charge_period_start_at, part_month) as part_start_at,
    least(charge_period_end_at, part_month + interval 1 month) as part_end_at,
    date_diff('second', charge_period_start_at, greatest(charge_period_start_at, part_month)) as from_seconds,
    date_diff('second', charge_period_start_at, least(charge_period_end_at, part_month + interval 1 month)) as until_seconds
  from line
),
part as (
  select concat_ws('/', line_id, strftime(part_start_at, '%Y-%m')) as charge_id, bill, charge_category, commitment_discount_status,
    charge_description, service_category, service_name, resource_id, resource_name, part_start_at, part_end_at,
    cast(sign(effective_micros) * (cast(abs(effective_micros) as hugeint) * until_seconds // whole_seconds
      - cast(abs(effective_micros) as hugeint) * from_seconds // whole_seconds) as bigint) as effective_micros,
    cast(sign(billed_micros) * (cast(abs(billed_micros) as hugeint) * until_seconds // whole_seconds
      - cast(abs(billed_micros) as hugeint) * from_seconds // whole_seconds) as bigint) as billed_micros,
    cast(sign(list_micros) * (cast(abs(list_micros) as hugeint) * until_seconds // whole_seconds
      - cast(abs(list_micros) as hugeint) * from_seconds // whole_seconds) as bigint) as list_micros
  from bounded
  where part_start_at >= $start and part_start_at < $end
),
matched as (
  select l.charge_id, n.cluster, n.node,
    row_number() over (partition by l.charge_id order by n.from_at, n.cluster, n.node) as preference
  from (
    select charge_id, part_start_at, part_end_at, resource_id as resource from part where resource_id is not null
    union
    select charge_id, part_start_at, part_end_at, resource_name from part where resource_name is not null
  ) as l
  join named as n on n.resource = l.resource and n.from_at < l.part_end_at and n.until_at > l.part_start_at
)
select l.charge_id, l.bill, l.part_start_at as charge_period_start_at, l.part_end_at as charge_period_end_at, l.charge_category,
  l.charge_description,
  l.service_category, l.service_name, l.resource_id, m.cluster, m.node,
  case
    when l.commitment_discount_status = 'Unused' then 'unused_commitment'
    when m.node is not null then 'node'
    else 'unmatched'
  end as placed_as,
  l.effective_micros, l.billed_micros, l.list_micros
from part as l
left join matched as m on m.charge_id = l.charge_id and m.preference = 1
union all
select concat_ws('/', 'asset', a.asset_id, strftime(a.cost_day, '%Y-%m-%d')),
  concat_ws('/', 'owned', a.cluster, strftime(a.cost_day, '%Y-%m')),
  a.cost_day, a.cost_day + interval 1 day, 'Usage', a.cost_kinds, 'owned', 'owned', a.asset_id, a.cluster, a.node,
  case
    when a.node is null then 'shared'
    when exists (
      select 1 from named as n
      where n.cluster = a.cluster and n.node = a.node and n.from_at < a.cost_day + interval 1 day and n.until_at > a.cost_day) then 'node'
    else 'unmatched'
  end, a.cost_micros, a.cost_micros, null
from core.asset_daily as a
where a.cost_day >= $start and a.cost_day < $end
union all
select concat_ws('/', 'rounding', r.bill), r.bill, r.charge_period_start_at, r.charge_period_end_at, 'Adjustment',
  'Rounding residue of the bill', null, null, null, null, null, 'unmatched', r.effective_residue_micros, r.billed_residue_micros, null
from core.bill_residue as r
where r.charge_period_start_at >= $start and r.charge_period_start_at < $end
  and (r.effective_residue_micros <> 0 or r.billed_residue_micros <> 0)
