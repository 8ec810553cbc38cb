-- GPU models for which demand is known before an instant, the most wanted first.
select gpu_model, min(use_hour) as first_hour, max(use_hour) + interval 1 hour as until_at
from marts.demand_hourly
where use_hour < $until
group by gpu_model
having sum(wanted_share_seconds) > 0
order by sum(wanted_share_seconds) desc, gpu_model
