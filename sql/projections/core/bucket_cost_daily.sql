/*
grain: one row per node, GPU model, MIG profile, day and bucket
keys: [cluster, node, gpu_model, mig_profile, use_day, bucket]
partition_by: use_day
units: {cost_micros: cost of the bucket; NULL where the node has none}
invariants:
  cost_of_buckets_is_cost_of_claimants: |
    select b.use_day, b.cost_micros, c.cost_micros
    from (select use_day, sum(cost_micros) as cost_micros from core.bucket_cost_daily group by use_day) as b
    join (select use_day, sum(case when share_seconds > unpriced_share_seconds then priced_micros end) as cost_micros
          from core.cost_daily group by use_day) as c on c.use_day = b.use_day
    where b.cost_micros <> c.cost_micros
*/
-- What runs hold is divided between active, idle and unmeasured by cumulative rounding in that order.
with claimed as (
  select cluster, node, gpu_model, mig_profile, use_day, bucket,
    cast(sum(case when share_seconds > unpriced_share_seconds then priced_micros end) as bigint) as cost_micros
  from core.cost_daily
  where use_day >= $start and use_day < $end
  group by cluster, node, gpu_model, mig_profile, use_day, bucket
),
daily as (
  select cluster, node, gpu_model, mig_profile, date_trunc('day', use_hour) as use_day, bucket,
    case when bucket in ('active', 'allocated_idle', 'allocated_unmeasured') then 'allocated' else bucket end as claimant,
    cast(sum(share_seconds) as bigint) as share_seconds
  from core.bucket_hourly
  where use_hour >= $start and use_hour < $end
  group by cluster, node, gpu_model, mig_profile, date_trunc('day', use_hour), bucket
),
bucket as (
  select cluster, node, gpu_model, mig_profile, use_day, bucket, claimant, share_seconds,
    cast(sum(share_seconds) over (
      partition by cluster, node, gpu_model, mig_profile, use_day, claimant order by bucket
      rows between unbounded preceding and current row) as hugeint) as until_share_seconds,
    cast(sum(share_seconds) over (partition by cluster, node, gpu_model, mig_profile, use_day, claimant) as hugeint)
      as whole_share_seconds
  from daily
)
select b.cluster, b.node, b.gpu_model, b.mig_profile, b.use_day, b.bucket, b.share_seconds,
  cast(sign(c.cost_micros) * (abs(c.cost_micros) * b.until_share_seconds // b.whole_share_seconds
    - abs(c.cost_micros) * (b.until_share_seconds - b.share_seconds) // b.whole_share_seconds) as bigint) as cost_micros
from bucket as b
left join claimed as c on c.cluster = b.cluster and c.node = b.node and c.gpu_model = b.gpu_model
  and c.mig_profile = b.mig_profile and c.use_day = b.use_day and c.bucket = b.claimant
