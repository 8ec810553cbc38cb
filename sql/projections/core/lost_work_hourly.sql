/*
grain: one row per attempt, node, GPU model, MIG profile and hour in which it did work that was lost, or restart work
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
-- Restart work comes first in an attempt; what it lost counts from there on, so no second counts twice.
with restart as (
  select a.cluster, a.run_id, a.started_at, coalesce(a.ended_at, l.known_until_at) as ended_at,
    a.started_at + interval 1 second * least(
      a.restart_seconds, date_diff('second', a.started_at, coalesce(a.ended_at, l.known_until_at))) as restart_until_at
  from core.restart_attempt as a
  cross join reference.ledger as l
),
stretch as (
  select cluster, run_id, started_at, ended_at, started_at as lost_from_at, restart_until_at as lost_until_at
  from restart
  union all
  select a.cluster, a.run_id, a.started_at, coalesce(a.ended_at, l.known_until_at),
    greatest(a.lost_from_at, coalesce(r.restart_until_at, a.lost_from_at)), a.lost_until_at
  from core.lost_work_attempt as a
  cross join reference.ledger as l
  left join restart as r on r.cluster = a.cluster and r.run_id = a.run_id and r.started_at = a.started_at
  where a.lost_from_at is not null
),
lost as (
  select cluster, run_id, started_at, ended_at, lost_from_at, lost_until_at
  from stretch
  where lost_from_at < lost_until_at and lost_from_at < $end and lost_until_at > $start
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
  cast(sum(share_seconds // held_seconds * lost_seconds) as bigint) as lost_share_seconds
from held
group by cluster, run_id, started_at, node, gpu_model, mig_profile, use_hour
