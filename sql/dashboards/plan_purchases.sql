-- What a plan says to buy.
select l.line, l.offer_id,
  coalesce((select max(o.instrument) from core.offer as o where o.offer_id = l.offer_id), 'purchase') as instrument,
  l.pool, l.starts_at, l.ends_at, l.gpu_count, l.hourly_commitment, l.cost, l.upfront, l.committed, l.break_even_ratio, l.used_ratio, l.reason
from marts.plan_line as l
where l.plan_id = $plan and l.line_kind = 'purchase'
order by l.line
