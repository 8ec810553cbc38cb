-- Every month that has a statement, newest first; closed_at is NULL while it is provisional.
select s.statement_month as month, max(c.closed_at) as closed_at
from statement_line as s
left join marts.period_closed as c on c.period_month = s.statement_month
group by s.statement_month
order by s.statement_month desc
