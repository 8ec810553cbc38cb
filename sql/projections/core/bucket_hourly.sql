/*
grain: one row per node, GPU model, MIG profile, hour and bucket
keys: [cluster, node, gpu_model, mig_profile, use_hour, bucket]
partition_by: use_hour
units: {share_seconds: 1/4200 of a GPU for one second}
invariants:
  buckets_add_up_to_capacity: |
    select b.cluster, b.node, b.gpu_model, b.mig_profile, b.use_hour, sum(b.share_seconds) as buckets,
      max(c.capacity_share_seconds + c.stranded_share_seconds) as capacity
    from core.bucket_hourly as b
    join core.capacity_hourly as c on c.cluster = b.cluster and c.node = b.node and c.gpu_model = b.gpu_model
      and c.mig_profile = b.mig_profile and c.use_hour = b.use_hour
    group by b.cluster, b.node, b.gpu_model, b.mig_profile, b.use_hour
    having sum(b.share_seconds) <> max(c.capacity_share_seconds + c.stranded_share_seconds)
  allocated_is_what_runs_hold: |
    select r.cluster, r.use_hour, r.held, b.allocated
    from (select cluster, use_hour, sum(share_seconds) as held from core.run_hourly group by cluster, use_hour) as r
    left join (
      select cluster, use_hour, sum(share_seconds) as allocated from core.bucket_hourly
      where bucket in ('active', 'allocated_idle', 'allocated_unmeasured') group by cluster, use_hour
    ) as b on b.cluster = r.cluster and b.use_hour = r.use_hour
    where b.allocated is null or b.allocated <> r.held
*/
-- Where the device of a run is unknown (sacct names nodes, not cards), activity on the node belongs to what is allocated
-- there, and the allocated part counts as measured in the proportion in which the node's devices were.
with allocated as (
  select cluster, node, gpu_model, mig_profile, use_hour, cast(sum(share_seconds) as bigint) as share_seconds
  from core.run_hourly
  where use_hour >= $start and use_hour < $end
  group by cluster, node, gpu_model, mig_profile, use_hour
),
pool as (
  select
    coalesce(c.cluster, a.cluster) as cluster, coalesce(c.node, a.node) as node,
    coalesce(c.gpu_model, a.gpu_model) as gpu_model, coalesce(c.mig_profile, a.mig_profile) as mig_profile,
    coalesce(c.use_hour, a.use_hour) as use_hour,
    coalesce(c.capacity_share_seconds, a.share_seconds) as capacity, coalesce(c.device_shares, 4200) as device_shares,
    coalesce(c.stranded_share_seconds, 0) as stranded, coalesce(c.down_share_seconds, 0) as down,
    coalesce(a.share_seconds, 0) as allocated
  from (
    select cluster, node, gpu_model, mig_profile, use_hour, capacity_share_seconds, device_shares, stranded_share_seconds,
      down_share_seconds
    from core.capacity_hourly where use_hour >= $start and use_hour < $end
  ) as c
  full join allocated as a on a.cluster = c.cluster and a.node = c.node and a.gpu_model = c.gpu_model
    and a.mig_profile = c.mig_profile and a.use_hour = c.use_hour
),
measured as (
  select p.cluster, p.node, p.gpu_model, p.mig_profile, p.use_hour,
    cast(sum(cast(bit_count(a.measured_mask) as bigint) * 60 * p.device_shares) as bigint) as measured,
    cast(sum(cast(bit_count(a.active_mask) as bigint) * 60 * p.device_shares) as bigint) as active
  from pool as p
  join core.activity_hourly as a on a.cluster = p.cluster and a.node = p.node and a.use_hour = p.use_hour
    and a.use_hour >= $start and a.use_hour < $end
    and coalesce(a.mig_profile, '') = p.mig_profile
    and (a.gpu_model is null or a.gpu_model = p.gpu_model or split_part(a.gpu_model, '-', 1) = split_part(p.gpu_model, '-', 1))
  group by p.cluster, p.node, p.gpu_model, p.mig_profile, p.use_hour
),
divided as (
  select p.cluster, p.node, p.gpu_model, p.mig_profile, p.use_hour, p.capacity, p.stranded, p.down, p.allocated,
    least(p.allocated, coalesce(m.active, 0)) as active,
    case
      when coalesce(m.measured, 0) >= p.capacity then p.allocated
      else greatest(least(p.allocated, coalesce(m.active, 0)), p.allocated * coalesce(m.measured, 0) // p.capacity)
    end as allocated_measured,
    greatest(p.capacity - p.allocated, 0) as free
  from pool as p
  left join measured as m on m.cluster = p.cluster and m.node = p.node and m.gpu_model = p.gpu_model
    and m.mig_profile = p.mig_profile and m.use_hour = p.use_hour
),
laid as (
  select cluster, node, gpu_model, mig_profile, use_hour, cast(active as bigint) as active,
    cast(allocated_measured - active as bigint) as allocated_idle,
    cast(allocated - allocated_measured as bigint) as allocated_unmeasured,
    cast(free - least(free, down) as bigint) as unallocated, cast(least(free, down) as bigint) as down,
    cast(stranded as bigint) as stranded, cast(least(capacity - allocated, 0) as bigint) as over_subscribed
  from divided
)
select cluster, node, gpu_model, mig_profile, use_hour, bucket, share_seconds
from laid unpivot (share_seconds for bucket in (
  active, allocated_idle, allocated_unmeasured, unallocated, down, stranded, over_subscribed))
where share_seconds <> 0
