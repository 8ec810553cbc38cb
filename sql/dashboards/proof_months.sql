-- Each month's proof, newest first; differences keep all six places, because a rounded zero proves nothing.
select p.charge_month, case when c.closed_at is null then 'open' else 'closed' end as state,
  cast(p.billed as decimal(18, 2)) as billed, cast(p.charged as decimal(18, 2)) as charged,
  cast(p.platform_held as decimal(18, 2)) as platform_held, cast(p.unmatched as decimal(18, 2)) as unmatched, p.difference,
  cast(p.invoiced as decimal(18, 2)) as invoiced, cast(p.prepaid as decimal(18, 2)) as prepaid
from marts.proof_monthly as p
left join marts.period_closed as c on c.period_month = p.charge_month
order by p.charge_month desc
