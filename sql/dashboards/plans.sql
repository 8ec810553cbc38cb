-- Recommended plans, the newest first, with how far each is above what no plan can beat.
select plan_id, made_at, is_latest, horizon_start_at, horizon_end_at, expected_cost, cvar_cost, bound_cost, repriced_cost,
  case when objective_cost <> 0 then cast(objective_cost - bound_cost as double) / cast(objective_cost as double) end as gap_ratio,
  repriced_cost - expected_cost as repriced_difference, scenario_count, seed, solved_by, log_batch_id, prices_from_at, prices_until_at
from marts.plan
order by made_at desc, plan_id
