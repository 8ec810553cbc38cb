/*
grain: one row per policy, subject and stretch of time with one value
keys: [policy, subject, from_at]
partition_by: null
units: {}
invariants: {}
*/
with version as (
  select policy, subject, effective_from_at, value,
    row_number() over (
      partition by policy, subject, effective_from_at order by version_at desc, batch_id desc, value) as age
  from events.policy_set
)
select policy, subject, effective_from_at as from_at,
  coalesce(lead(effective_from_at) over (partition by policy, subject order by effective_from_at),
    timestamptz '9999-01-01 00:00:00+00') as until_at,
  value
from version
where age = 1
