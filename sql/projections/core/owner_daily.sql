/*
grain: one row per day and payer with GPU time
keys: [use_day, cluster, business_unit, team, project]
partition_by: use_day
units: {cost_micros: cost of what was used directly; NULL when none of it has a known cost}
invariants:
  every_allocated_second_has_a_payer: |
    select a.use_day, a.share_seconds, o.share_seconds as paid_for
    from (select date_trunc('day', use_hour) as use_day, sum(share_seconds) as share_seconds from core.account_hourly
          group by date_trunc('day', use_hour)) as a
    left join (select use_day, sum(share_seconds) as share_seconds from core.owner_daily group by use_day) as o
      on o.use_day = a.use_day
    where o.share_seconds is null or o.share_seconds <> a.share_seconds
*/
-- An account belongs to the owner in force in the hour; an owner named for the cluster wins over one for all clusters.
-- An account that nobody owns keeps its own name as its team.
with account_hour as (
  select cluster, account, use_hour, cast(sum(share_seconds) as bigint) as share_seconds,
    cast(sum(idle_share_seconds) as bigint) as idle_share_seconds,
    cast(sum(unmeasured_share_seconds) as bigint) as unmeasured_share_seconds,
    cast(sum(unpriced_share_seconds) as bigint) as unpriced_share_seconds, cast(sum(cost_micros) as bigint) as cost_micros
  from core.account_hourly
  where use_hour >= $start and use_hour < $end
  group by cluster, account, use_hour
)
select date_trunc('day', a.use_hour) as use_day, a.cluster,
  coalesce(own.business_unit, shared.business_unit, 'Unassigned') as business_unit,
  coalesce(own.team, shared.team, case when a.account = '' then '(no account)' else a.account end) as team,
  coalesce(own.project, shared.project, '') as project,
  cast(sum(a.share_seconds) as bigint) as share_seconds,
  cast(sum(a.idle_share_seconds) as bigint) as idle_share_seconds,
  cast(sum(a.unmeasured_share_seconds) as bigint) as unmeasured_share_seconds,
  cast(sum(a.unpriced_share_seconds) as bigint) as unpriced_share_seconds,
  cast(sum(a.cost_micros) as bigint) as cost_micros
from account_hour as a
left join staged.ownership as own on own.cluster = a.cluster and own.account = a.account
  and own.from_at <= a.use_hour and own.until_at > a.use_hour
left join staged.ownership as shared on shared.cluster = '*' and shared.account = a.account
  and shared.from_at <= a.use_hour and shared.until_at > a.use_hour
group by date_trunc('day', a.use_hour), a.cluster, coalesce(own.business_unit, shared.business_unit, 'Unassigned'),
  coalesce(own.team, shared.team, case when a.account = '' then '(no account)' else a.account end),
  coalesce(own.project, shared.project, '')
