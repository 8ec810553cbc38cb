/*
grain: one row per charge month, payer and kind of cost, as computed now
keys: [charge_month, business_unit, team, project, cost_kind]
partition_by: null
units: {cost_micros: what the payer bears}
invariants: {}
*/
select cast(date_trunc('month', cost_day) as date) as charge_month, business_unit, team, project, cost_kind,
  cast(sum(share_seconds) as bigint) as share_seconds,
  cast(sum(idle_share_seconds) as bigint) as idle_share_seconds,
  cast(sum(unmeasured_share_seconds) as bigint) as unmeasured_share_seconds,
  cast(sum(unpriced_share_seconds) as bigint) as unpriced_share_seconds,
  cast(sum(cost_micros) as bigint) as cost_micros
from core.line_daily
group by cast(date_trunc('month', cost_day) as date), business_unit, team, project, cost_kind
having sum(share_seconds) <> 0 or sum(cost_micros) <> 0 or sum(cost_micros) is null
