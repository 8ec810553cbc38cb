-- GPU-hours of each day by bucket, of one cluster or of all.
select use_day, bucket, cast(sum(gpu_hours) as double) as gpu_hours
from marts.bucket_daily
where use_day >= $month and use_day < cast($month as date) + interval 1 month and ($cluster is null or cluster = $cluster)
group by use_day, bucket
order by use_day, bucket
