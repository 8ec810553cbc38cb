/*
grain: one row per cluster (or * for all), account and stretch of time with one owner
keys: [cluster, account, from_at]
partition_by: null
units: {}
invariants: {}
*/
with version as (
  select cluster, account, effective_from_at, project, team, business_unit,
    row_number() over (
      partition by cluster, account, effective_from_at order by version_at desc, batch_id desc, team, business_unit) as age
  from events.ownership_assigned
)
select cluster, account, effective_from_at as from_at,
  coalesce(lead(effective_from_at) over (partition by cluster, account order by effective_from_at),
    timestamptz '9999-01-01 00:00:00+00') as until_at,
  coalesce(project, '') as project, team, business_unit
from version
where age = 1
