-- Each month's proof, newest first, in all six places: a rounded zero proves nothing, and the page rounds to cents that add up.
select p.charge_month, case when c.closed_at is null then 'open' else 'closed' end as state, p.billed, p.charged, p.platform_held,
  p.unmatched, p.difference, p.invoiced
from marts.proof_monthly as p
left join marts.period_closed as c on c.period_month = p.charge_month
order by p.charge_month desc
