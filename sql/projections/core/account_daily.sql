/*
grain: one row per cluster, account and day
keys: [cluster, account, use_day]
partition_by: use_day
units:
  idle_share_seconds: allocated and measured without activity
  unpriced_share_seconds: on nodes without a known cost
  cost_micros: cost of what was held, less lost_micros; NULL where none of it has a known cost
  lost_micros: cost of lost work, which is no usage and paid as policy says
invariants: {}
*/
-- Idle and unmeasured time of a pool of devices in an hour belongs to its accounts in proportion to what they hold there.
with bucket as (
  select cluster, node, gpu_model, mig_profile, use_hour,
    cast(sum(case when bucket = 'allocated_idle' then share_seconds else 0 end) as hugeint) as idle,
    cast(sum(case when bucket = 'allocated_unmeasured' then share_seconds else 0 end) as hugeint) as unmeasured,
    cast(sum(share_seconds) as hugeint) as allocated
  from core.bucket_hourly
  where use_hour >= $start and use_hour < $end and bucket in ('active', 'allocated_idle', 'allocated_unmeasured')
  group by cluster, node, gpu_model, mig_profile, use_hour
),
held as (
  select cluster, coalesce(account, '') as account, node, gpu_model, mig_profile, use_hour, sum(share_seconds) as share_seconds
  from core.run_hourly
  where use_hour >= $start and use_hour < $end
  group by cluster, coalesce(account, ''), node, gpu_model, mig_profile, use_hour
),
measured as (
  select h.cluster, h.account, date_trunc('day', h.use_hour) as use_day,
    cast(sum(h.share_seconds * b.idle // b.allocated) as bigint) as idle_share_seconds,
    cast(sum(h.share_seconds * b.unmeasured // b.allocated) as bigint) as unmeasured_share_seconds
  from held as h
  join bucket as b on b.cluster = h.cluster and b.node = h.node and b.gpu_model = h.gpu_model
    and b.mig_profile = h.mig_profile and b.use_hour = h.use_hour
  group by h.cluster, h.account, date_trunc('day', h.use_hour)
),
cost as (
  select cluster, coalesce(account, '') as account, use_day, cast(sum(share_seconds) as bigint) as share_seconds,
    cast(sum(unpriced_share_seconds) as bigint) as unpriced_share_seconds,
    cast(sum(case when share_seconds > unpriced_share_seconds then priced_micros - lost_micros end) as bigint) as cost_micros,
    cast(sum(lost_micros) as bigint) as lost_micros
  from core.cost_daily
  where bucket = 'allocated' and use_day >= $start and use_day < $end
  group by cluster, coalesce(account, ''), use_day
)
select c.cluster, c.account, c.use_day, c.share_seconds, m.idle_share_seconds, m.unmeasured_share_seconds,
  c.unpriced_share_seconds, c.cost_micros, c.lost_micros
from cost as c
join measured as m on m.cluster = c.cluster and m.account = c.account and m.use_day = c.use_day
