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
with found as (
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
)
select f.kind, k.severity, f.subject,
  concat_ws(' ', cast(cast(round(f.amount, 2) as decimal(18, 2)) as varchar),
    case when k.unit = 'money' then l.reporting_currency else k.unit end) as found,
  k.expected, f.first_seen_at, f.last_seen_at, k.explanation, f.amount
from found as f
join reference.finding_kind as k on k.kind = f.kind
cross join reference.ledger as l
