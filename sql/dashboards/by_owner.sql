-- A statement by business unit; of one unit, by team; of one team, by project. Costliest first.
with line as (
  select case when $team is not null then project when $unit is not null then team else business_unit end as name,
    statement_month, is_correction, cost_kind, gpu_hours, cost
  from statement_line
  where statement_month in ($month, cast(cast($month as date) - interval 1 month as date))
    and ($unit is null or business_unit = $unit) and ($team is null or team = $team)
),
owner as (
  select name, max(statement_month = $month) as is_here,
    sum(case when statement_month = $month and cost_kind = 'usage' and not is_correction then gpu_hours end) as gpu_hours,
    sum(case when statement_month = $month and cost_kind = 'usage' and not is_correction and cost is not null then gpu_hours end)
      as priced_hours,
    sum(case when statement_month = $month and cost_kind = 'usage' and not is_correction then cost end) as usage,
    sum(case when statement_month = $month and cost_kind <> 'usage' and not is_correction then cost end) as pools,
    sum(case when statement_month = $month and is_correction then cost end) as corrections,
    sum(case when statement_month = $month then cost end) as total,
    sum(case when statement_month <> $month then cost end) as total_before
  from line
  group by name
),
telemetry as (
  select case when $team is not null then case when project = '' then '(no project)' else project end
      when $unit is not null then team else business_unit end as name,
    sum(share_seconds) as share_seconds, sum(idle_share_seconds) as idle, sum(unmeasured_share_seconds) as unmeasured
  from core.line_daily
  where cost_kind = 'usage' and cost_day >= cast($month as timestamptz)
    and cost_day < cast($month as timestamptz) + interval 1 month
    and ($unit is null or business_unit = $unit) and ($team is null or team = $team)
  group by name
)
select o.name, o.gpu_hours,
  case when t.share_seconds > t.unmeasured then cast(t.idle as double) / (t.share_seconds - t.unmeasured) end as idle_ratio,
  case when o.priced_hours > 0 then cast(cast(o.usage as double) / cast(o.priced_hours as double) as decimal(18, 4)) end as hour_cost,
  cast(o.usage as decimal(18, 2)) as usage, cast(o.pools as decimal(18, 2)) as pools,
  cast(o.corrections as decimal(18, 2)) as corrections, cast(o.total as decimal(18, 2)) as total,
  case when (select count(*) > 0 from statement_line where statement_month = cast(cast($month as date) - interval 1 month as date))
    then cast(o.total - coalesce(o.total_before, 0) as decimal(18, 2)) end as change
from owner as o
left join telemetry as t on t.name = o.name
where o.is_here
order by o.total desc nulls last, o.name
