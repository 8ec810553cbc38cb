-- What the amount of a statement is made of, for everyone, a business unit, a team or a project.
select cost_kind, nullif(sum(gpu_hours), 0) as gpu_hours, cast(sum(cost) as decimal(18, 2)) as cost
from statement_line
where statement_month = $month and not is_correction
  and ($unit is null or business_unit = $unit) and ($team is null or team = $team) and ($project is null or project = $project)
group by cost_kind
order by cost_kind <> 'usage', cost desc nulls last
