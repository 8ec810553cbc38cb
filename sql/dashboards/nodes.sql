-- GPU time of a month by node: what of its capacity was used, idle, free or down.
with node as (
  select cluster, node, case when min(gpu_model) = max(gpu_model) then min(gpu_model) else 'mixed' end as gpu_model,
    sum(gpu_hours) as gpu_hours, sum(cost) as cost,
    sum(case when bucket in ('active', 'allocated_idle', 'allocated_unmeasured') then gpu_hours else 0 end) as allocated,
    sum(case when bucket = 'active' then gpu_hours else 0 end) as active,
    sum(case when bucket = 'allocated_idle' then gpu_hours else 0 end) as idle,
    sum(case when bucket = 'unallocated' then gpu_hours else 0 end) as unallocated,
    sum(case when bucket = 'down' then gpu_hours else 0 end) as down
  from marts.bucket_daily
  where use_day >= $month and use_day < cast($month as date) + interval 1 month and ($cluster is null or cluster = $cluster)
  group by cluster, node
)
select case when node = '' then '(no node named)' else node end as node, cluster, gpu_model, gpu_hours,
  case when gpu_hours > 0 then cast(allocated as double) / gpu_hours end as allocated_ratio,
  case when active + idle > 0 then cast(idle as double) / (active + idle) end as idle_ratio,
  case when gpu_hours > 0 then cast(unallocated as double) / gpu_hours end as unallocated_ratio,
  case when gpu_hours > 0 then cast(down as double) / gpu_hours end as down_ratio,
  cast(cost as decimal(18, 2)) as cost
from node
order by allocated_ratio, cluster, node
