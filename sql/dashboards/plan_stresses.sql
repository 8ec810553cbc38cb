-- What a plan's purchases would cost in other worlds, and what it would cost without them; the worst first.
select concat(upper(left(world, 1)), substr(world, 2)) as world, cost as with_purchases, cost_without as without_purchases, saving
from marts.plan_stress
where plan_id = $plan
order by saving, world
