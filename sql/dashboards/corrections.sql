-- Corrections of earlier months that a statement carries, one line each.
select charge_month, business_unit, team, project, cost_kind, gpu_hours, cost
from statement_line
where statement_month = $month and is_correction
  and ($unit is null or business_unit = $unit) and ($team is null or team = $team) and ($project is null or project = $project)
order by charge_month, abs(cost) desc, business_unit, team, project, cost_kind
