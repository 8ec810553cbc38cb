/*
grain: one row per node, GPU model, MIG profile, hour and bucket
keys: [cluster, node, gpu_model, mig_profile, use_hour, bucket]
partition_by: use_hour
units: {cost_micros: cost of the bucket; NULL where the node has none}
invariants:
  cost_of_buckets_is_cost_of_claimants: |
    select b.use_hour, b.cost_micros, c.cost_micros
    from (select use_hour, sum(cost_micros) as cost_micros from core.bucket_cost_hourly group by use_hour) as b
    join (select use_hour, sum(cost_micros) as cost_micros from core.cost_hourly group by use_hour) as c on c.use_hour = b.use_hour
    where b.cost_micros <> c.cost_micros
*/
-- What runs hold is divided between active, idle and unmeasured by cumulative rounding in that order.
with claimed as (
  select cluster, node, gpu_model, mig_profile, use_hour, bucket, cast(sum(cost_micros) as bigint) as cost_micros
  from core.cost_hourly
  where use_hour >= $start and use_hour < $end
  group by cluster, node, gpu_model, mig_profile, use_hour, bucket
),
bucket as (
  select cluster, node, gpu_model, mig_profile, use_hour, bucket, share_seconds,
    case when bucket in ('active', 'allocated_idle', 'allocated_unmeasured') then 'allocated' else bucket end as claimant,
    cast(sum(share_seconds) over (
      partition by cluster, node, gpu_model, mig_profile, use_hour,
        case when bucket in ('active', 'allocated_idle', 'allocated_unmeasured') then 'allocated' else bucket end
      order by bucket rows between unbounded preceding and current row) as bigint) as until_share_seconds,
    cast(sum(share_seconds) over (
      partition by cluster, node, gpu_model, mig_profile, use_hour,
        case when bucket in ('active', 'allocated_idle', 'allocated_unmeasured') then 'allocated' else bucket end) as bigint)
      as whole_share_seconds
  from core.bucket_hourly
  where use_hour >= $start and use_hour < $end
)
select b.cluster, b.node, b.gpu_model, b.mig_profile, b.use_hour, b.bucket, b.share_seconds,
  cast(sign(c.cost_micros) * (cast(abs(c.cost_micros) as hugeint) * b.until_share_seconds // b.whole_share_seconds
    - cast(abs(c.cost_micros) as hugeint) * (b.until_share_seconds - b.share_seconds) // b.whole_share_seconds) as bigint)
    as cost_micros
from bucket as b
left join claimed as c on c.cluster = b.cluster and c.node = b.node and c.gpu_model = b.gpu_model
  and c.mig_profile = b.mig_profile and c.use_hour = b.use_hour and c.bucket = b.claimant
