-- Statements month by month, by business unit; of one unit, by team; of one team, by project. At most 24 months.
select statement_month as month,
  case when $team is not null then project when $unit is not null then team else business_unit end as name,
  cast(sum(cost) as double) as cost
from statement_line
where ($unit is null or business_unit = $unit) and ($team is null or team = $team) and ($project is null or project = $project)
  and statement_month > (select max(statement_month) - interval 24 month from statement_line)
group by all
order by month, name
