-- GPU-hours and cost of a month by bucket, of one cluster or of all; the buckets add up to the capacity.
select bucket, sum(gpu_hours) as gpu_hours, cast(sum(gpu_hours) as double) / sum(sum(gpu_hours)) over () as capacity_ratio,
  cast(sum(cost) as decimal(18, 2)) as cost
from marts.bucket_daily
where use_day >= $month and use_day < cast($month as date) + interval 1 month and ($cluster is null or cluster = $cluster)
group by bucket
order by gpu_hours desc, bucket
