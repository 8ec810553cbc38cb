/*
grain: one row per posting
keys: [charge_month, posted_month, business_unit, team, project, cost_kind]
partition_by: null
units: {cost_micros: signed}
invariants: {}
*/
with version as (
  select charge_month, posted_month, business_unit, team, project, cost_kind, usage_share_seconds, cost_micros,
    row_number() over (
      partition by charge_month, posted_month, business_unit, team, project, cost_kind order by batch_id) as age
  from events.posting_made
)
select charge_month, posted_month, business_unit, team, project, cost_kind, usage_share_seconds, cost_micros
from version
where age = 1
