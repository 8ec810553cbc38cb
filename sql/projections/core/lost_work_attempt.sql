/*
grain: one row per attempt that was interrupted, with the stretch of its work that was lost
keys: [cluster, run_id, started_at]
partition_by: started_at
units:
  lost_from_at: "last checkpoint within the attempt, else its start; NULL where the run tells of no checkpoint: unknown"
  lost_until_at: "when it was interrupted, at the latest its end; NULL: it never ended"
invariants:
  lost_within_the_attempt: |
    select cluster, run_id, started_at from core.lost_work_attempt where lost_from_at < started_at or lost_until_at < lost_from_at
*/
-- A run that saved a checkpoint in any attempt is known to save them, so an attempt of it without one lost all its work. A
-- checkpoint may be complete after the warning and before the end: then nothing is lost.
with attempt as (
  select i.cluster, i.run_id, i.started_at, r.ended_at, coalesce(r.ended_at, i.interrupted_at) as saved_until_at,
    least(i.interrupted_at, coalesce(r.ended_at, i.interrupted_at)) as lost_until_at
  from staged.interruption as i
  join staged.run as r on r.cluster = i.cluster and r.run_id = i.run_id and r.started_at = i.started_at
  where i.started_at >= $start and i.started_at < $end and r.started_at >= $start and r.started_at < $end
),
saved as (
  select a.cluster, a.run_id, a.started_at,
    max(case when c.saved_at >= a.started_at and c.saved_at <= a.saved_until_at then c.saved_at end) as saved_at
  from attempt as a
  join staged.checkpoint as c on c.cluster = a.cluster and c.run_id = a.run_id
  group by a.cluster, a.run_id, a.started_at
)
select a.cluster, a.run_id, a.started_at, a.ended_at,
  case when s.run_id is not null and a.lost_until_at is not null
    then least(coalesce(s.saved_at, a.started_at), a.lost_until_at) end as lost_from_at,
  a.lost_until_at
from attempt as a
left join saved as s on s.cluster = a.cluster and s.run_id = a.run_id and s.started_at = a.started_at
