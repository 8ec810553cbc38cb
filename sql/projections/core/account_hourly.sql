/*
grain: one row per cluster, account, GPU model and hour
keys: [cluster, account, gpu_model, use_hour]
partition_by: use_hour
units: {idle_share_seconds: allocated and measured without activity, unpriced_share_seconds: on nodes without a known cost}
invariants: {}
*/
with bucket as (
  select cluster, node, gpu_model, mig_profile, use_hour,
    cast(sum(case when bucket = 'allocated_idle' then share_seconds else 0 end) as bigint) as idle,
    cast(sum(case when bucket = 'allocated_unmeasured' then share_seconds else 0 end) as bigint) as unmeasured,
    cast(sum(share_seconds) as bigint) as allocated
  from core.bucket_hourly
  where use_hour >= $start and use_hour < $end and bucket in ('active', 'allocated_idle', 'allocated_unmeasured')
  group by cluster, node, gpu_model, mig_profile, use_hour
)
select c.cluster, coalesce(c.account, '') as account, c.gpu_model, c.use_hour,
  cast(sum(c.share_seconds) as bigint) as share_seconds,
  cast(sum(cast(c.share_seconds as hugeint) * b.idle // b.allocated) as bigint) as idle_share_seconds,
  cast(sum(cast(c.share_seconds as hugeint) * b.unmeasured // b.allocated) as bigint) as unmeasured_share_seconds,
  cast(sum(case when c.cost_micros is null then c.share_seconds else 0 end) as bigint) as unpriced_share_seconds,
  cast(sum(c.cost_micros) as bigint) as cost_micros
from core.cost_hourly as c
join bucket as b on b.cluster = c.cluster and b.node = c.node and b.gpu_model = c.gpu_model
  and b.mig_profile = c.mig_profile and b.use_hour = c.use_hour
where c.bucket = 'allocated' and c.use_hour >= $start and c.use_hour < $end
group by c.cluster, coalesce(c.account, ''), c.gpu_model, c.use_hour
