/*
grain: one row per day, cluster, node, GPU model and bucket
keys: [use_day, cluster, node, gpu_model, bucket]
partition_by: use_day
units: {gpu_hours: whole-GPU hours, cost: reporting currency; NULL where the node has no known cost}
columns:
  use_day: UTC day
  cluster: scheduler's cluster
  node: node; empty where the source names none
  gpu_model: GPU model
  bucket: active, allocated_idle, allocated_unmeasured, unallocated, down, stranded, or over_subscribed (negative, more was allocated than exists)
  gpu_hours: whole-GPU hours, four places; a node's buckets of a day add up to its rounded capacity
  share_seconds: 1/4200 of a GPU for one second; exact
  cost: cost of the bucket
invariants: {}
*/
with daily as (
  select use_day, cluster, node, gpu_model, bucket,
    cast(sum(share_seconds) as bigint) as share_seconds, cast(sum(cost_micros) as bigint) as cost_micros
  from core.bucket_cost_daily
  where use_day >= $start and use_day < $end
  group by use_day, cluster, node, gpu_model, bucket
),
running as (
  select use_day, cluster, node, gpu_model, bucket, share_seconds, cost_micros,
    cast(sum(share_seconds) over (
      partition by use_day, cluster, node order by gpu_model, bucket
      rows between unbounded preceding and current row) as bigint) as until_share_seconds
  from daily
)
select cast(use_day as date) as use_day, cluster, node, gpu_model, bucket,
  cast(cast((until_share_seconds * 10000 + 7560000) // 15120000
    - ((until_share_seconds - share_seconds) * 10000 + 7560000) // 15120000 as decimal(18, 0))
    * cast(0.0001 as decimal(5, 4)) as decimal(18, 4)) as gpu_hours,
  share_seconds,
  cast(cast(cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as cost
from running
