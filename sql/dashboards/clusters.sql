-- Clusters with GPUs in a month.
select distinct cluster from marts.bucket_daily
where use_day >= $month and use_day < cast($month as date) + interval 1 month
order by cluster
