/*
grain: one row per charge month, month of posting, payer and kind of cost
keys: [charge_month, posted_month, business_unit, team, project, line_kind, cost_kind]
partition_by: null
units: {gpu_hours: whole-GPU hours, signed, cost: reporting currency, signed}
columns:
  charge_month: month in which the cost was incurred
  posted_month: month whose statement carries the line; NULL while it is provisional
  business_unit: business unit; Platform for what the platform holds, Unassigned where nobody owns the account
  team: team
  project: project, or empty
  line_kind: usage, a cost pool, or correction (of the charge month, in a later statement)
  cost_kind: what a correction corrects; otherwise the line kind
  gpu_hours: whole-GPU hours, four places
  idle_ratio: part of the measured GPU time that showed no activity; only on provisional and usage lines, NULL where nothing was measured
  cost: cost in the reporting currency; NULL where none of it has a known price
  cost_micros: the same in millionths; exact
invariants: {}
*/
with line as (
  select charge_month, posted_month, business_unit, team, project,
    case when posted_month <> charge_month then 'correction' else cost_kind end as line_kind, cost_kind,
    usage_share_seconds as share_seconds, cost_micros
  from core.posting
  union all
  select charge_month, null, business_unit, team, project, case when is_correction then 'correction' else cost_kind end, cost_kind,
    share_seconds, cost_micros
  from core.unposted
)
select l.charge_month, l.posted_month, l.business_unit, l.team, l.project, l.line_kind, l.cost_kind,
  cast(cast((l.share_seconds * 10000 + sign(l.share_seconds) * 7560000) // 15120000 as decimal(18, 0))
    * cast(0.0001 as decimal(5, 4)) as decimal(18, 4)) as gpu_hours,
  case when l.line_kind = 'usage' and m.share_seconds > m.unmeasured_share_seconds
    then cast(m.idle_share_seconds as double) / (m.share_seconds - m.unmeasured_share_seconds) end as idle_ratio,
  cast(cast(l.cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as cost,
  l.cost_micros
from line as l
left join core.line_monthly as m on m.charge_month = l.charge_month and m.business_unit = l.business_unit and m.team = l.team
  and m.project = l.project and m.cost_kind = l.cost_kind
