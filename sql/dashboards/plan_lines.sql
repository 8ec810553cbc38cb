-- What a plan is expected to cost, line by line; the lines add up to its expected cost.
select line, line_kind, coalesce(offer_id, '') as offer_id, coalesce(pool, 'all') as pool, gpu_hours, cost,
  case when gpu_hours > 0 then cast(cast(cost as double) / cast(gpu_hours as double) as decimal(18, 4)) end as hour_cost, reason
from marts.plan_line
where plan_id = $plan
order by line
