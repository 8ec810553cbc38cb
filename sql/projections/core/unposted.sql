/*
grain: one row per charge month, payer and kind of cost that has something to post
keys: [charge_month, business_unit, team, project, cost_kind]
partition_by: null
units: {cost_micros: computed now less already posted}
invariants: {}
*/
with posted as (
  select charge_month, business_unit, team, project, cost_kind, cast(sum(usage_share_seconds) as bigint) as share_seconds,
    cast(sum(cost_micros) as bigint) as cost_micros
  from core.posting
  group by charge_month, business_unit, team, project, cost_kind
)
select coalesce(c.charge_month, p.charge_month) as charge_month,
  coalesce(c.business_unit, p.business_unit) as business_unit, coalesce(c.team, p.team) as team,
  coalesce(c.project, p.project) as project, coalesce(c.cost_kind, p.cost_kind) as cost_kind,
  coalesce(c.share_seconds, 0) - coalesce(p.share_seconds, 0) as share_seconds,
  case
    when c.charge_month is not null and c.cost_micros is null and p.cost_micros is null then null
    else coalesce(c.cost_micros, 0) - coalesce(p.cost_micros, 0)
  end as cost_micros,
  exists (select 1 from events.period_closed as x where x.period_month = coalesce(c.charge_month, p.charge_month))
    as is_correction
from core.line_monthly as c
full join posted as p on p.charge_month = c.charge_month and p.business_unit = c.business_unit and p.team = c.team
  and p.project = c.project and p.cost_kind = c.cost_kind
where coalesce(c.share_seconds, 0) <> coalesce(p.share_seconds, 0) or coalesce(c.cost_micros, 0) <> coalesce(p.cost_micros, 0)
