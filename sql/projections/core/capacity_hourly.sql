/*
grain: one row per node, GPU model, MIG profile and hour
keys: [cluster, node, gpu_model, mig_profile, use_hour]
partition_by: use_hour
units: {device_shares: parts of a GPU that one device is worth}
invariants:
  stranded_is_part_of_capacity: select cluster, node, use_hour from core.capacity_hourly where stranded_share_seconds < 0
*/
-- Capacity comes from the inventory; a node that no inventory names counts for the minutes in which telemetry saw it.
with pool as (
  select cluster, node, gpu_model, mig_profile, from_at, until_at, min(device_shares) as device_shares,
    cast(sum(card_count * slices_per_card_count) as bigint) as device_count,
    cast(sum(card_count * slices_per_card_count * device_shares) as bigint) as capacity_shares,
    cast(sum(case when profile_rank = 1 then card_count * stranded_shares else 0 end) as bigint) as stranded_shares
  from staged.gpu_inventory
  group by cluster, node, gpu_model, mig_profile, from_at, until_at
),
pool_hour as (
  select p.cluster, p.node, p.gpu_model, p.mig_profile, h.use_hour, p.device_shares, p.device_count, p.capacity_shares,
    p.stranded_shares,
    date_diff('second', greatest(p.from_at, h.use_hour), least(p.until_at, h.use_hour + interval 1 hour)) as up_seconds
  from pool as p
  join reference.hour as h on h.use_hour < p.until_at and h.use_hour + interval 1 hour > p.from_at
  where h.use_hour >= $start and h.use_hour < $end
),
down_hour as (
  select d.cluster, d.node, h.use_hour,
    cast(sum(date_diff('second', greatest(d.from_at, h.use_hour), least(d.until_at, h.use_hour + interval 1 hour))) as bigint)
      as down_seconds
  from staged.node_down as d
  join reference.hour as h on h.use_hour < d.until_at and h.use_hour + interval 1 hour > d.from_at
  where h.use_hour >= $start and h.use_hour < $end
  group by d.cluster, d.node, h.use_hour
),
known as (
  select p.cluster, p.node, p.gpu_model, p.mig_profile, p.use_hour,
    min(p.device_shares) as device_shares, max(p.device_count) as device_count,
    cast(sum(p.up_seconds * p.capacity_shares) as bigint) as capacity_share_seconds,
    cast(sum(p.up_seconds * p.stranded_shares) as bigint) as stranded_share_seconds,
    cast(sum(least(p.up_seconds, coalesce(d.down_seconds, 0)) * p.capacity_shares) as bigint) as down_share_seconds
  from pool_hour as p
  left join down_hour as d on d.cluster = p.cluster and d.node = p.node and d.use_hour = p.use_hour
  group by p.cluster, p.node, p.gpu_model, p.mig_profile, p.use_hour
),
seen as (
  select a.cluster, a.node, coalesce(a.gpu_model, 'unknown') as gpu_model, coalesce(a.mig_profile, '') as mig_profile,
    a.use_hour, coalesce(w.max_shares, n.compute_shares, 4200) as device_shares,
    cast(count(*) as bigint) as device_count,
    cast(sum(cast(bit_count(a.seen_mask) as bigint) * 60) as bigint) as seen_seconds
  from core.activity_hourly as a
  left join reference.mig_weight as w on w.gpu_model = a.gpu_model and w.mig_profile = a.mig_profile
  left join reference.named_weight as n on n.mig_profile = a.mig_profile
  where a.use_hour >= $start and a.use_hour < $end
    and not exists (select 1 from known as k where k.cluster = a.cluster and k.node = a.node and k.use_hour = a.use_hour)
  group by a.cluster, a.node, coalesce(a.gpu_model, 'unknown'), coalesce(a.mig_profile, ''), a.use_hour,
    coalesce(w.max_shares, n.compute_shares, 4200)
)
select cluster, node, gpu_model, mig_profile, use_hour, device_shares, device_count, capacity_share_seconds,
  stranded_share_seconds, down_share_seconds, true as is_inventoried
from known
union all
select cluster, node, gpu_model, mig_profile, use_hour, device_shares, device_count, seen_seconds * device_shares, 0, 0, false
from seen
