/*
grain: one row per node and stretch of time in which it was down or draining
keys: [cluster, node, from_at]
partition_by: null
units: {}
invariants: {}
*/
with version as (
  select cluster, node, changed_at, state, reason,
    row_number() over (
      partition by cluster, node, changed_at order by version_at desc, batch_id desc, state) as age
  from events.node_state_changed
),
stretch as (
  select cluster, node, changed_at as from_at, state, reason,
    lead(changed_at) over (partition by cluster, node order by changed_at) as next_at
  from version where age = 1
)
select cluster, node, from_at, coalesce(next_at, timestamptz '9999-01-01 00:00:00+00') as until_at, state, reason
from stretch
where state <> 'up'
