-- What a person should look at, worst first.
select kind, severity, subject, amount, found, expected, explanation, first_seen_at, last_seen_at
from marts.findings
order by case severity when 'error' then 0 when 'warning' then 1 else 2 end, kind, amount desc, subject
