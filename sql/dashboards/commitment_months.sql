-- What each commitment cost by month, and what became of it.
select m.provider, m.commitment_id, left(regexp_extract(m.commitment_id, '[^/:]+$'), 10) as short_id, c.instrument, m.bill_month, m.committed, m.used, m.unused,
  case when m.used + m.unused > 0 then cast(m.used as double) / cast(m.used + m.unused as double) end as used_ratio,
  m.on_demand, m.on_demand - m.used - m.unused as saved
from marts.commitment_monthly as m
left join staged.commitment as c on c.commitment_id = m.commitment_id
where m.commitment_id <> ''
order by m.bill_month desc, m.committed desc nulls last, m.commitment_id
