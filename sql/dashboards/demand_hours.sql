-- GPUs of a model that were wanted in each hour of a stretch of time, over all clusters and classes; 0 where none were.
with hour as (
  select unnest(generate_series($since, $until - interval 1 hour, interval 1 hour)) as use_hour
),
wanted as (
  select use_hour, sum(wanted_share_seconds) as share_seconds
  from marts.demand_hourly
  where gpu_model = $model and use_hour >= $since and use_hour < $until
  group by use_hour
)
select h.use_hour, coalesce(cast(w.share_seconds as double) / 15120000, 0) as gpus
from hour as h
left join wanted as w on w.use_hour = h.use_hour
order by h.use_hour
