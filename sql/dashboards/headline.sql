-- One row: what a statement says about everyone, a business unit, a team or a project.
with line as (
  select charge_month, statement_month, is_correction, business_unit, cost_kind, gpu_hours, cost
  from statement_line
  where ($unit is null or business_unit = $unit) and ($team is null or team = $team) and ($project is null or project = $project)
),
own as (
  select sum(case when business_unit <> 'Platform' then cost end) as charged,
    sum(case when business_unit = 'Platform' then cost end) as held,
    sum(case when cost_kind = 'unmatched' then cost end) as unmatched,
    sum(case when cost_kind = 'usage' then cost end) as usage,
    sum(case when cost_kind <> 'usage' then cost end) as pools,
    sum(case when cost_kind = 'usage' then gpu_hours end) as gpu_hours
  from line
  where statement_month = $month and not is_correction
),
correction as (
  select sum(cost) as cost from line where statement_month = $month and is_correction
),
later as (
  select sum(cost) as cost, max(statement_month) as month from line where charge_month = $month and statement_month <> $month
),
telemetry as (
  select sum(share_seconds) as share_seconds, sum(idle_share_seconds) as idle, sum(unmeasured_share_seconds) as unmeasured,
    sum(unpriced_share_seconds) as unpriced
  from core.line_daily
  where cost_kind = 'usage' and cost_day >= cast($month as timestamptz)
    and cost_day < cast($month as timestamptz) + interval 1 month
    and ($unit is null or business_unit = $unit) and ($team is null or team = $team)
    and ($project is null or project = $project or ($project = '(no project)' and project = ''))
)
select cast(coalesce((select max(billed_micros) from marts.period_closed where period_month = $month) * cast(0.000001 as decimal(7, 6)),
    (select max(billed) from marts.proof_monthly where charge_month = $month)) as decimal(18, 2)) as billed,
  cast(o.charged as decimal(18, 2)) as charged, cast(o.held as decimal(18, 2)) as held,
  cast(o.unmatched as decimal(18, 2)) as unmatched, cast(o.usage as decimal(18, 2)) as usage,
  cast(o.pools as decimal(18, 2)) as pools, cast(c.cost as decimal(18, 2)) as corrections,
  cast(coalesce(o.charged, 0) + coalesce(o.held, 0) + coalesce(c.cost, 0) as decimal(18, 2)) as total,
  cast(l.cost as decimal(18, 2)) as corrected_later, l.month as corrected_month,
  cast(o.gpu_hours as double) as gpu_hours,
  case when t.share_seconds > t.unmeasured then cast(t.idle as double) / (t.share_seconds - t.unmeasured) end as idle_ratio,
  case when t.share_seconds > 0 then 1 - cast(t.unmeasured as double) / t.share_seconds end as measured_ratio,
  cast(t.unpriced as double) / 15120000 as unpriced_gpu_hours
from own as o
cross join correction as c
cross join later as l
cross join telemetry as t
