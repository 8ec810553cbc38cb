/*
grain: one row per day, cluster, account, team, GPU model and final state
keys: [use_day, cluster, account, team, gpu_model, final_state]
partition_by: use_day
units: {gpu_hours: whole-GPU hours, share_seconds: 1/4200 of a GPU for one second}
columns:
  use_day: UTC day
  cluster: scheduler's cluster
  account: scheduler's account
  team: team that owned the account on that day
  gpu_model: GPU model
  final_state: state the run ended in, or its present state
  gpu_hours: whole-GPU hours of the day, four places; a cluster's rows of a day add up to its rounded sum
  share_seconds: 1/4200 of a GPU for one second; exact
invariants: {}
*/
with daily as (
  select date_trunc('day', h.use_hour) as use_day, h.cluster, coalesce(h.account, '') as account, h.gpu_model,
    coalesce(r.state, 'HELD') as final_state, cast(sum(h.share_seconds) as bigint) as share_seconds
  from core.run_hourly as h
  left join staged.run as r on r.cluster = h.cluster and r.run_id = h.run_id and r.started_at = h.started_at
  where h.use_hour >= $start and h.use_hour < $end
  group by date_trunc('day', h.use_hour), h.cluster, coalesce(h.account, ''), h.gpu_model, coalesce(r.state, 'HELD')
),
running as (
  select use_day, cluster, account, gpu_model, final_state, share_seconds,
    cast(sum(share_seconds) over (
      partition by use_day, cluster order by account, final_state, gpu_model
      rows between unbounded preceding and current row) as bigint) as until_share_seconds
  from daily
)
select cast(r.use_day as date) as use_day, r.cluster, r.account,
  coalesce(own.team, shared.team, case when r.account = '' then '(no account)' else r.account end) as team,
  r.gpu_model, r.final_state,
  cast(cast((r.until_share_seconds * 10000 + 7560000) // 15120000
    - ((r.until_share_seconds - r.share_seconds) * 10000 + 7560000) // 15120000 as decimal(18, 0))
    * cast(0.0001 as decimal(5, 4)) as decimal(18, 4)) as gpu_hours,
  r.share_seconds
from running as r
left join staged.ownership as own on own.cluster = r.cluster and own.account = r.account
  and own.from_at < r.use_day + interval 1 day and own.until_at >= r.use_day + interval 1 day
left join staged.ownership as shared on shared.cluster = '*' and shared.account = r.account
  and shared.from_at < r.use_day + interval 1 day and shared.until_at >= r.use_day + interval 1 day
