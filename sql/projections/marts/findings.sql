/*
grain: one row per kind of finding and subject
keys: [kind, subject]
partition_by: null
units: {found: text with its unit}
columns:
  kind: kind of finding
  severity: error (a close is refused), warning or info
  subject: what it is about
  found: what was found, with its unit
  expected: what would have been right
  first_seen_at: first day it was found on; for rows of a source, when they were first recorded
  last_seen_at: last day it was found on
  explanation: why it matters and what to do
  amount: the number in found
invariants: {}
*/
with planned as (
  select l.offer_id
  from events.plan_line_recommended as l
  where l.offer_id is not null and l.plan_id = (select max_by(plan_id, made_at) from events.plan_recommended)
  union
  select c.offer_id
  from staged.commitment as c
  cross join reference.ledger as r
  where c.offer_id is not null and c.state <> 'cancelled' and c.ends_at >= r.known_until_at
),
read_last as (
  select p.offer_id, p.provider, p.region, p.instrument, max(p.observed_at) as observed_at
  from staged.price as p
  group by p.offer_id, p.provider, p.region, p.instrument
),
aged as (
  select case when u.offer_id is null then concat_ws(' ', n.provider, n.region, n.instrument) else n.offer_id end as subject,
    n.observed_at, r.known_until_at, date_diff('second', n.observed_at, r.known_until_at) as age_seconds
  from read_last as n
  cross join reference.ledger as r
  join reference.policy_now as p on p.policy = 'price_max_age_days'
  left join planned as u on u.offer_id = n.offer_id
  where (u.offer_id is not null or n.instrument = 'on_demand')
    and date_diff('second', n.observed_at, r.known_until_at) > cast(p.value as bigint) * 86400
),
unconverted as (
  select currency, observed_at as said_at from staged.price where fx_rate is null
  union all
  select currency, starts_at from staged.commitment where fx_rate is null
),
found as (
  select kind, subject, min(finding_day) as first_seen_at, max(finding_day) as last_seen_at, sum(amount) as amount
  from core.finding_daily
  group by kind, subject
  union all
  select case when r.kind = 'set_aside' then 'rows_set_aside' else 'rows_rejected' end,
    concat_ws(' – ', r.source, r.reason), min(b.recorded_at), max(b.recorded_at), cast(count(*) as double)
  from events.rejected as r
  join events.batches as b on b.batch_id = r.batch_id
  group by r.kind, r.source, r.reason
  union all
  select 'closed_month_changed', strftime(u.charge_month, '%Y-%m'), cast(u.charge_month as timestamptz),
    cast(u.charge_month as timestamptz), cast(sum(abs(u.cost_micros)) as double) / 1000000
  from core.unposted as u
  where u.is_correction
  group by u.charge_month
  union all
  select 'workload_unclassified', cluster, min(date_trunc('day', use_hour)), max(date_trunc('day', use_hour)),
    cast(sum(held_share_seconds) as double) / 15120000
  from core.demand_hourly
  where workload_class = 'unclassified' and held_share_seconds > 0
  group by cluster
  union all
  select 'price_stale', subject, min(observed_at), max(known_until_at), cast(max(age_seconds) as double) / 86400
  from aged
  group by subject
  union all
  select 'price_without_rate', currency, min(said_at), max(said_at), cast(count(*) as double)
  from unconverted
  group by currency
  union all
  select 'commitment_overlap',
    concat_ws(' ', offer_id, region, zone, gpu_model, strftime(starts_at, '%Y-%m-%d'), strftime(ends_at, '%Y-%m-%d')),
    min(starts_at), max(starts_at), cast(count(*) as double)
  from staged.commitment
  where state = 'active' and offer_id is not null
  group by offer_id, region, zone, gpu_model, strftime(starts_at, '%Y-%m-%d'), strftime(ends_at, '%Y-%m-%d')
  having count(*) > 1
)
select f.kind, k.severity, f.subject,
  concat_ws(' ', cast(cast(round(f.amount, 2) as decimal(18, 2)) as varchar),
    case when k.unit = 'money' then l.reporting_currency else k.unit end) as found,
  k.expected, f.first_seen_at, f.last_seen_at, k.explanation, f.amount
from found as f
join reference.finding_kind as k on k.kind = f.kind
cross join reference.ledger as l
