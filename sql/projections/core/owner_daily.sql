/*
grain: one row per day, cluster and payer with GPU time
keys: [use_day, cluster, business_unit, team, project]
partition_by: use_day
units:
  cost_micros: cost of what was used directly, lost work left out; NULL when none of it has a known cost
  lost_micros: cost of work that interruptions lost, which policy distributes
invariants:
  every_allocated_second_has_a_payer: |
    select a.use_day, a.share_seconds, o.share_seconds as paid_for
    from (select use_day, sum(share_seconds) as share_seconds from core.account_daily group by use_day) as a
    left join (select use_day, sum(share_seconds) as share_seconds from core.owner_daily group by use_day) as o on o.use_day = a.use_day
    where o.share_seconds is null or o.share_seconds <> a.share_seconds
*/
-- An account belongs to the owner in force when the UTC day ends; an owner named for the cluster wins over one for all
-- clusters. An account that nobody owns keeps its own name as its team.
select a.use_day, a.cluster,
  coalesce(own.business_unit, shared.business_unit, 'Unassigned') as business_unit,
  coalesce(own.team, shared.team, case when a.account = '' then '(no account)' else a.account end) as team,
  coalesce(own.project, shared.project, '') as project,
  cast(sum(a.share_seconds) as bigint) as share_seconds,
  cast(sum(a.idle_share_seconds) as bigint) as idle_share_seconds,
  cast(sum(a.unmeasured_share_seconds) as bigint) as unmeasured_share_seconds,
  cast(sum(a.unpriced_share_seconds) as bigint) as unpriced_share_seconds,
  cast(sum(a.cost_micros) as bigint) as cost_micros,
  cast(sum(a.lost_micros) as bigint) as lost_micros
from core.account_daily as a
left join staged.ownership as own on own.cluster = a.cluster and own.account = a.account
  and own.from_at < a.use_day + interval 1 day and own.until_at >= a.use_day + interval 1 day
left join staged.ownership as shared on shared.cluster = '*' and shared.account = a.account
  and shared.from_at < a.use_day + interval 1 day and shared.until_at >= a.use_day + interval 1 day
where a.use_day >= $start and a.use_day < $end
group by a.use_day, a.cluster, coalesce(own.business_unit, shared.business_unit, 'Unassigned'),
  coalesce(own.team, shared.team, case when a.account = '' then '(no account)' else a.account end),
  coalesce(own.project, shared.project, '')
