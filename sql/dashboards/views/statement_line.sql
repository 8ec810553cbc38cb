-- One row per statement and line: payer, kind of cost, and the month in which the cost was incurred.
-- A statement carries the month's own lines and corrections of earlier months. What no close has posted yet stands on the
-- statement that the next close would make. Cents add up to each charge month's rounded total by largest remainder, as
-- models.ledger.statement_cents does it, so that sums at every level of a page agree with each other to the cent.
with last_close as (
  select max(period_month) as month from marts.period_closed
),
next_close as (
  select any_value(c.month) as last_month,
    coalesce(min(l.charge_month), cast(any_value(c.month) + interval 1 month as date)) as month
  from last_close as c
  left join marts.chargeback_monthly as l on l.posted_month is null and l.charge_month > c.month
),
line as (
  select coalesce(l.posted_month, case when l.charge_month <= n.last_month then n.month else l.charge_month end) as statement_month,
    l.charge_month, l.business_unit, l.team, case when l.project = '' then '(no project)' else l.project end as project,
    l.cost_kind, l.gpu_hours, l.cost_micros
  from marts.chargeback_monthly as l
  cross join next_close as n
),
floored as (
  select statement_month, charge_month, business_unit, team, project, cost_kind, gpu_hours, cost_micros,
    (cost_micros % 10000 + 10000) % 10000 as remainder_micros,
    (cost_micros - (cost_micros % 10000 + 10000) % 10000) // 10000 as floor_cents
  from line
),
whole as (
  select statement_month, charge_month, sum(cost_micros) + 5000 as raised_micros, sum(floor_cents) as floor_cents
  from floored
  group by statement_month, charge_month
),
ranked as (
  select f.statement_month, f.charge_month, f.business_unit, f.team, f.project, f.cost_kind, f.gpu_hours, f.floor_cents,
    (w.raised_micros - (w.raised_micros % 10000 + 10000) % 10000) // 10000 - w.floor_cents as missing_cents,
    row_number() over (
      partition by f.statement_month, f.charge_month
      order by f.remainder_micros desc nulls last, f.business_unit = 'Platform', f.business_unit, f.team,
        case when f.project = '(no project)' then '' else f.project end, f.cost_kind <> 'usage', f.cost_kind) as turn
  from floored as f
  join whole as w on w.statement_month = f.statement_month and w.charge_month = f.charge_month
)
select statement_month, charge_month, charge_month <> statement_month as is_correction, business_unit, team, project, cost_kind,
  gpu_hours,
  cast((floor_cents + case when turn <= missing_cents then 1 else 0 end) * cast(0.01 as decimal(3, 2)) as decimal(18, 2)) as cost
from ranked
