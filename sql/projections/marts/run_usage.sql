/*
grain: one row per attempt of a run that held GPUs
keys: [cluster, run_id, started_at]
partition_by: null
stored: view
units: {gpu_hours: whole-GPU hours (MIG and shared GPUs by weight), cost: reporting currency; NULL where a part has no known price}
columns:
  cluster: scheduler's cluster
  run_id: scheduler's raw id
  started_at: when the attempt started, UTC
  ended_at: when it ended; NULL while it runs
  account: scheduler's account
  user_name: who submitted it
  team: team that owned the account when the attempt started; the account's own name where nobody owns it
  project: project, or empty
  business_unit: business unit, or Unassigned
  gpu_model: GPU model; mixed where the attempt held several
  mig_profile: MIG profile; NULL for whole or shared GPUs, mixed where it held several
  device_seconds: seconds times devices held (GPUs, or MIG slices)
  share_seconds: 1/4200 of a GPU for one second; exact
  final_state: state of the attempt
  gpu_hours: whole-GPU hours, four places; within a day of start the rows add up to the rounded sum
  cost: cost in the reporting currency, what lost work cost included
  blocking_seconds: time that the attempt stood still for its checkpoints, a part of what it held; NULL unknown
  lost_share_seconds: "GPU time since its last checkpoint, where it was interrupted, and of restart work by policy; 0 where none, NULL unknown"
  lost_gpu_hours: the same in whole-GPU hours, four places
  lost_cost: what the lost time cost, of cost; NULL unknown
invariants: {}
*/
with attempt as (
  select cluster, run_id, started_at, max(account) as account, min(gpu_model) as first_model, max(gpu_model) as last_model,
    min(mig_profile) as first_profile, max(mig_profile) as last_profile,
    cast(sum(share_seconds) as bigint) as share_seconds,
    cast(sum(cost_micros) as bigint) as cost_micros,
    count(*) filter (where cost_micros is null) as unpriced_count,
    cast(sum(lost_share_seconds) as bigint) as lost_share_seconds, cast(sum(lost_micros) as bigint) as lost_micros
  from core.cost_daily
  where bucket = 'allocated'
  group by cluster, run_id, started_at
),
device as (
  select cluster, run_id, started_at, cast(sum(device_seconds) as bigint) as device_seconds
  from core.run_hourly
  group by cluster, run_id, started_at
),
blocked as (
  select r.cluster, r.run_id, r.started_at,
    case when count(c.blocking_seconds) = count(*) then cast(sum(c.blocking_seconds) as bigint) end as blocking_seconds
  from staged.run as r
  join staged.checkpoint as c on c.cluster = r.cluster and c.run_id = r.run_id and c.saved_at >= r.started_at
    and (r.ended_at is null or c.saved_at <= r.ended_at)
  group by r.cluster, r.run_id, r.started_at
),
counted as (
  select a.cluster, a.run_id, a.started_at, r.ended_at, a.account, r.user_name, a.first_model, a.last_model, a.first_profile,
    a.last_profile, a.share_seconds, a.cost_micros, a.unpriced_count, coalesce(r.state, 'HELD') as final_state, d.device_seconds,
    b.blocking_seconds, a.lost_share_seconds, a.lost_micros, i.run_id is null or i.lost_from_at is not null as is_lost_known,
    cast(sum(a.share_seconds) over (
      partition by a.cluster, date_trunc('day', a.started_at) order by a.account, r.state, a.started_at, a.run_id
      rows between unbounded preceding and current row) as bigint) as until_share_seconds
  from attempt as a
  join device as d on d.cluster = a.cluster and d.run_id = a.run_id and d.started_at = a.started_at
  left join staged.run as r on r.cluster = a.cluster and r.run_id = a.run_id and r.started_at = a.started_at
  left join core.lost_work_attempt as i on i.cluster = a.cluster and i.run_id = a.run_id and i.started_at = a.started_at
  left join blocked as b on b.cluster = a.cluster and b.run_id = a.run_id and b.started_at = a.started_at
)
select c.cluster, c.run_id, c.started_at, c.ended_at, c.account, c.user_name,
  coalesce(own.team, shared.team, c.account, '(no account)') as team,
  coalesce(own.project, shared.project, '') as project,
  coalesce(own.business_unit, shared.business_unit, 'Unassigned') as business_unit,
  case when c.first_model = c.last_model then c.first_model else 'mixed' end as gpu_model,
  case when c.first_profile <> c.last_profile then 'mixed' when c.first_profile = '' then null else c.first_profile end as mig_profile,
  c.device_seconds, c.share_seconds, c.final_state,
  cast(cast((c.until_share_seconds * 10000 + 7560000) // 15120000
    - ((c.until_share_seconds - c.share_seconds) * 10000 + 7560000) // 15120000 as decimal(18, 0))
    * cast(0.0001 as decimal(5, 4)) as decimal(18, 4)) as gpu_hours,
  case when c.unpriced_count = 0
    then cast(cast(c.cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) end as cost,
  c.blocking_seconds,
  case when c.is_lost_known then c.lost_share_seconds end as lost_share_seconds,
  case when c.is_lost_known then cast(cast((c.lost_share_seconds * 10000 + 7560000) // 15120000 as decimal(18, 0))
    * cast(0.0001 as decimal(5, 4)) as decimal(18, 4)) end as lost_gpu_hours,
  case when c.is_lost_known and c.unpriced_count = 0
    then cast(cast(c.lost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) end as lost_cost
from counted as c
left join staged.ownership as own on own.cluster = c.cluster and own.account = c.account
  and own.from_at <= c.started_at and own.until_at > c.started_at
left join staged.ownership as shared on shared.cluster = '*' and shared.account = c.account
  and shared.from_at <= c.started_at and shared.until_at > c.started_at
