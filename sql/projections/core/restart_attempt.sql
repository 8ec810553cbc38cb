/*
grain: one row per attempt that came after an interrupted one, where a policy says how long such a run takes to work again
keys: [cluster, run_id, started_at]
partition_by: started_at
units: {restart_seconds: "from its start until it works again, by policy; it may end before"}
invariants:
  a_restart_takes_time: select cluster, run_id, started_at from core.restart_attempt where restart_seconds <= 0
*/
-- The policy of the attempt's partition wins over that of its account, and that over the one for all.
with attempt as (
  select r.cluster, r.run_id, r.started_at, r.ended_at,
    cast(coalesce(p.value, o.value, y.value, d.value) as bigint) as restart_seconds
  from staged.run as r
  join reference.policy_default as d on d.policy = 'restart_seconds'
  left join staged.policy as p on p.policy = 'restart_seconds' and p.subject = concat('partition:', r.partition)
    and p.from_at <= r.started_at and p.until_at > r.started_at
  left join staged.policy as o on o.policy = 'restart_seconds' and o.subject = concat('account:', r.account)
    and o.from_at <= r.started_at and o.until_at > r.started_at
  left join staged.policy as y on y.policy = 'restart_seconds' and y.subject = ''
    and y.from_at <= r.started_at and y.until_at > r.started_at
  where r.started_at >= $start and r.started_at < $end
),
follower as (
  select a.cluster, a.run_id, a.started_at, a.ended_at, a.restart_seconds, max(b.started_at) as before_started_at
  from attempt as a
  join staged.run as b on b.cluster = a.cluster and b.run_id = a.run_id and b.started_at < a.started_at
  where a.restart_seconds > 0
  group by a.cluster, a.run_id, a.started_at, a.ended_at, a.restart_seconds
)
select f.cluster, f.run_id, f.started_at, f.ended_at, f.restart_seconds
from follower as f
join staged.interruption as i on i.cluster = f.cluster and i.run_id = f.run_id and i.started_at = f.before_started_at
