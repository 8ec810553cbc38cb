/*
grain: one row per attempt and GPU model that it held
keys: [cluster, run_id, started_at, gpu_model]
partition_by: started_at
units: {held_shares: parts of a GPU held throughout the attempt, 4200 to one GPU}
invariants:
  wanted_before_it_started: select cluster, run_id, started_at from core.run_demand where wanted_from_at > started_at
  holds_something: select cluster, run_id, started_at from core.run_demand where held_shares <= 0
*/
-- An attempt holds the same devices from its start to its end, so what it held in its first hour, as metered, says how much.
-- Its class is the one in force when it started: by its QOS, else its partition, else its account.
with attempt as (
  select cluster, run_id, started_at, account, partition, qos, submitted_at, ended_at,
    date_trunc('hour', started_at) as first_hour
  from staged.run
  where placement_id is not null and started_at >= $start and started_at < $end
),
held as (
  select a.cluster, a.run_id, a.started_at, h.gpu_model, a.account, a.partition, a.qos, a.submitted_at, a.ended_at,
    cast(sum(h.share_seconds) as bigint) as share_seconds,
    date_diff('second', a.started_at, least(coalesce(a.ended_at, a.first_hour + interval 1 hour),
      a.first_hour + interval 1 hour)) as first_seconds
  from attempt as a
  join core.run_hourly as h on h.cluster = a.cluster and h.run_id = a.run_id and h.started_at = a.started_at
    and h.use_hour = a.first_hour
  where h.use_hour >= date_trunc('hour', $start) and h.use_hour < $end
  group by a.cluster, a.run_id, a.started_at, h.gpu_model, a.account, a.partition, a.qos, a.submitted_at, a.ended_at, a.first_hour
)
select h.cluster, h.run_id, h.started_at, h.gpu_model,
  coalesce(q.value, p.value, o.value, 'unclassified') as workload_class,
  h.share_seconds // h.first_seconds as held_shares,
  least(coalesce(h.submitted_at, h.started_at), h.started_at) as wanted_from_at, h.ended_at,
  h.submitted_at is not null as is_queue_known
from held as h
left join staged.policy as q on q.policy = 'workload_class' and q.subject = concat('qos:', h.qos)
  and q.from_at <= h.started_at and q.until_at > h.started_at
left join staged.policy as p on p.policy = 'workload_class' and p.subject = concat('partition:', h.partition)
  and p.from_at <= h.started_at and p.until_at > h.started_at
left join staged.policy as o on o.policy = 'workload_class' and o.subject = concat('account:', h.account)
  and o.from_at <= h.started_at and o.until_at > h.started_at
