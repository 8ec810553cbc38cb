/*
grain: one row per interrupted attempt, node, GPU model, MIG profile and hour in which it did work that was lost
keys: [cluster, run_id, started_at, node, gpu_model, mig_profile, use_hour]
partition_by: use_hour
units: {lost_share_seconds: 1/4200 of a GPU for one second}
invariants:
  lost_is_held: |
    select l.cluster, l.run_id, l.use_hour, l.lost_share_seconds, h.share_seconds
    from core.lost_work_hourly as l
    left join core.run_hourly as h on h.cluster = l.cluster and h.run_id = l.run_id and h.started_at = l.started_at
      and h.node = l.node and h.gpu_model = l.gpu_model and h.mig_profile = l.mig_profile and h.use_hour = l.use_hour
    where l.lost_share_seconds <= 0 or h.share_seconds is null or l.lost_share_seconds > h.share_seconds
*/
-- An attempt holds the same devices from its start to its end, so its share-seconds of an hour divide by its seconds there.
with lost as (
  select a.cluster, a.run_id, a.started_at, coalesce(a.ended_at, l.known_until_at) as ended_at, a.lost_from_at, a.lost_until_at
  from core.lost_work_attempt as a
  cross join reference.ledger as l
  where a.lost_from_at < a.lost_until_at and a.lost_from_at < $end and a.lost_until_at > $start
),
held as (
  select h.cluster, h.run_id, h.started_at, h.node, h.gpu_model, h.mig_profile, h.use_hour, h.share_seconds,
    date_diff('second', greatest(l.started_at, h.use_hour), least(l.ended_at, h.use_hour + interval 1 hour)) as held_seconds,
    date_diff('second', greatest(l.lost_from_at, h.use_hour), least(l.lost_until_at, h.use_hour + interval 1 hour))
      as lost_seconds
  from core.run_hourly as h
  join lost as l on l.cluster = h.cluster and l.run_id = h.run_id and l.started_at = h.started_at
    and l.lost_until_at > h.use_hour and l.lost_from_at < h.use_hour + interval 1 hour
  where h.use_hour >= $start and h.use_hour < $end
)
select cluster, run_id, started_at, node, gpu_model, mig_profile, use_hour,
  cast(share_seconds // held_seconds * lost_seconds as bigint) as lost_share_seconds
from held
