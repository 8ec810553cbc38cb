/*
grain: one row per attempt, node, GPU model, MIG profile and hour in which it held GPUs
keys: [cluster, run_id, started_at, node, gpu_model, mig_profile, use_hour]
partition_by: use_hour
units: {share_seconds: 1/4200 of a GPU for one second, device_seconds: seconds times devices (GPUs or slices)}
invariants:
  holds_something: select cluster, run_id, use_hour from core.run_hourly where share_seconds <= 0
*/
-- Allocation comes from the scheduler's start and end, never from telemetry; only where a cluster has no scheduler
-- events at all does the holder that the exporter names stand in for it. A device's model and weight are those of the
-- node's inventory when the attempt started; without one, the scheduler's own words.
with attempt as (
  select r.cluster, r.run_id, r.started_at, r.account, r.placement_id,
    coalesce(r.ended_at, l.known_until_at) as ended_at
  from staged.run as r
  cross join reference.ledger as l
  where r.placement_id is not null and r.started_at < $end and (r.ended_at is null or r.ended_at > $start)
),
candidate as (
  select a.cluster, a.run_id, a.started_at, a.ended_at, a.account, p.node, p.gpu_type,
    coalesce(p.mig_profile, '') as mig_profile, p.device_count,
    p.gpu_model as said_gpu_model, p.device_shares as said_device_shares, i.device_shares as known_device_shares,
    w.max_shares, n.compute_shares, i.card_count, i.mig_layout,
    case when p.gpu_model is null or p.gpu_model = i.gpu_model or split_part(i.gpu_model, '-', 1) = p.gpu_model
      then i.gpu_model end as known_gpu_model
  from attempt as a
  join events.run_placed as p on p.placement_id = a.placement_id
  left join staged.gpu_inventory as i on i.cluster = a.cluster and i.node = p.node
    and i.mig_profile = coalesce(p.mig_profile, '') and i.from_at <= a.started_at and i.until_at > a.started_at
  left join reference.mig_weight as w on w.gpu_model = p.gpu_model and w.mig_profile = p.mig_profile
  left join reference.named_weight as n on n.mig_profile = p.mig_profile
),
ranked as (
  select cluster, run_id, started_at, ended_at, account, node, mig_profile, device_count,
    coalesce(known_gpu_model, said_gpu_model, 'unknown') as gpu_model,
    coalesce(said_device_shares, case when known_gpu_model is not null then known_device_shares end, max_shares, compute_shares,
      case when mig_profile = '' then 4200 end) as device_shares,
    row_number() over (
      partition by cluster, run_id, started_at, node, gpu_type, mig_profile
      order by case when known_gpu_model is null then 1 else 0 end, card_count desc, known_gpu_model, mig_layout) as preference
  from candidate
),
span as (
  select cluster, run_id, started_at, account, node, gpu_model, mig_profile, device_count, device_shares,
    greatest(started_at, $start) as from_at, least(ended_at, $end) as until_at
  from ranked
  where preference = 1 and device_count > 0
),
exploded as (
  select cluster, run_id, started_at, account, node, gpu_model, mig_profile, device_count, device_shares, from_at, until_at,
    unnest(generate_series(date_trunc('hour', from_at), until_at - interval 1 second, interval 1 hour)) as use_hour
  from span
  where until_at > from_at
)
select cluster, run_id, started_at, account, node, gpu_model, mig_profile, use_hour,
  cast(sum(device_count * date_diff('second', greatest(from_at, use_hour), least(until_at, use_hour + interval 1 hour)))
    as bigint) as device_seconds,
  cast(sum(device_count * device_shares
    * date_diff('second', greatest(from_at, use_hour), least(until_at, use_hour + interval 1 hour))) as bigint)
    as share_seconds
from exploded
group by cluster, run_id, started_at, account, node, gpu_model, mig_profile, use_hour
union all
select a.cluster, a.holder, date_trunc('day', a.use_hour), split_part(a.holder, '/', 1), a.node, c.gpu_model, c.mig_profile,
  a.use_hour, cast(sum(cast(bit_count(a.held_mask) as bigint) * 60) as bigint),
  cast(sum(cast(bit_count(a.held_mask) as bigint) * 60 * c.device_shares) as bigint)
from core.activity_hourly as a
join core.capacity_hourly as c on c.cluster = a.cluster and c.node = a.node and c.use_hour = a.use_hour
  and c.gpu_model = coalesce(a.gpu_model, 'unknown') and c.mig_profile = coalesce(a.mig_profile, '')
where a.holder is not null and a.use_hour >= $start and a.use_hour < $end
  and not exists (select 1 from staged.run as r where r.cluster = a.cluster)
group by a.cluster, a.holder, date_trunc('day', a.use_hour), split_part(a.holder, '/', 1), a.node, c.gpu_model,
  c.mig_profile, a.use_hour
