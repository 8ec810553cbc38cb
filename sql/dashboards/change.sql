-- Why a statement differs from the month before, by owner: the parts of a row add up to its difference exactly.
-- More or fewer hours at the old price, the other price for the new hours (what is left of the usage's difference, so that
-- rounding stays here), pools, corrections. Each project is taken apart by itself and then added up, so that a unit's parts are
-- those of its teams. A project without hours before has no old price: all of its usage is more hours.
with line as (
  select case when $team is not null then project when $unit is not null then team else business_unit end as name,
    business_unit, team, project, statement_month = $month as is_now, is_correction, cost_kind, gpu_hours, cost
  from statement_line
  where statement_month in ($month, cast(cast($month as date) - interval 1 month as date))
    and ($unit is null or business_unit = $unit) and ($team is null or team = $team) and ($project is null or project = $project)
    and cost is not null
),
part as (
  select name,
    coalesce(sum(case when not is_now and cost_kind = 'usage' and not is_correction then gpu_hours end), 0) as hours_before,
    coalesce(sum(case when is_now and cost_kind = 'usage' and not is_correction then gpu_hours end), 0) as hours_now,
    coalesce(sum(case when not is_now and cost_kind = 'usage' and not is_correction then cost end), 0) as usage_before,
    coalesce(sum(case when is_now and cost_kind = 'usage' and not is_correction then cost end), 0) as usage_now,
    coalesce(sum(case when cost_kind <> 'usage' and not is_correction then case when is_now then cost else -cost end end), 0) as pools,
    coalesce(sum(case when is_correction then case when is_now then cost else -cost end end), 0) as corrections,
    coalesce(sum(case when not is_now then cost end), 0) as total_before,
    coalesce(sum(case when is_now then cost end), 0) as total_now
  from line
  group by name, business_unit, team, project
),
effect as (
  select name, hours_before, hours_now, usage_now - usage_before as usage_change, pools, corrections, total_before, total_now,
    case when hours_before = 0 then cast(usage_now - usage_before as decimal(18, 2))
      else cast(cast(hours_now - hours_before as double) * cast(usage_before as double) / cast(hours_before as double)
        as decimal(18, 2)) end as hours_effect
  from part
)
select name, sum(hours_before) as hours_before, sum(hours_now) as hours_now, cast(sum(total_before) as decimal(18, 2)) as total_before,
  cast(sum(hours_effect) as decimal(18, 2)) as hours_effect,
  cast(sum(usage_change - hours_effect) as decimal(18, 2)) as price_effect, cast(sum(pools) as decimal(18, 2)) as pools_effect,
  cast(sum(corrections) as decimal(18, 2)) as corrections_effect, cast(sum(total_now) as decimal(18, 2)) as total_now,
  cast(sum(total_now - total_before) as decimal(18, 2)) as difference
from effect
group by name
order by abs(sum(total_now - total_before)) desc, name
