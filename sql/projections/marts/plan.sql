/*
grain: one row per recommended plan
keys: [plan_id]
partition_by: null
units: {expected_cost: reporting currency}
columns:
  plan_id: digest of everything the plan was made from; the same inputs give the same plan
  made_at: when it was computed
  is_latest: whether it is the last one made
  horizon_start_at: start of the time planned for
  horizon_end_at: end of the time planned for (exclusive)
  expected_cost: expected discounted cost over the horizon, the sum of the plan's lines
  cvar_cost: mean cost of the worst scenarios
  bound_cost: no plan has a lower objective
  objective_cost: what the plan makes least; the expected cost unless the policy weighs the tail
  repriced_cost: expected cost when billed by the vendors' own order; NULL where that was not computed
  scenario_count: demand scenarios
  seed: seed of the scenarios
  solved_by: method
  log_batch_id: last batch that the inputs were read from
  policy_digest: digest of plan.yaml
  prices_from_at: oldest price used
  prices_until_at: newest price used
invariants:
  nothing_costs_less_than_the_bound: |
    select plan_id from marts.plan
    where cast(objective_cost as double) < cast(bound_cost as double) - 0.000001 * abs(cast(bound_cost as double)) - 0.01
*/
with version as (
  select plan_id, made_at, horizon_start_at, horizon_end_at, expected_cost_micros, cvar_cost_micros, bound_cost_micros,
    objective_cost_micros, repriced_cost_micros, scenario_count, seed, solved_by, log_batch_id, policy_digest, prices_from_at,
    prices_until_at,
    row_number() over (partition by plan_id order by version_at desc, batch_id desc) as age
  from events.plan_recommended
)
select plan_id, made_at, row_number() over (order by made_at desc, plan_id) = 1 as is_latest, horizon_start_at,
  horizon_end_at,
  cast(cast(expected_cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as expected_cost,
  cast(cast(cvar_cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as cvar_cost,
  cast(cast(bound_cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as bound_cost,
  cast(cast(objective_cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as objective_cost,
  cast(cast(repriced_cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as repriced_cost,
  scenario_count, seed, solved_by, log_batch_id, policy_digest, prices_from_at, prices_until_at
from version
where age = 1
