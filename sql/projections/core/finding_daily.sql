/*
grain: one row per day and thing a person should look at
keys: [finding_day, kind, subject]
partition_by: finding_day
units: {amount: in the unit that the kind's explanation names}
invariants: {}
*/
-- What is found by the day; marts.findings adds it up and explains it.
with no_owner as (
  select o.use_day as finding_day, 'account_without_owner' as kind, concat_ws('/', o.cluster, o.team) as subject,
    cast(sum(o.share_seconds) as double) / 15120000 as amount
  from core.owner_daily as o
  where o.business_unit = 'Unassigned' and o.use_day >= $start and o.use_day < $end
  group by o.use_day, o.cluster, o.team
),
no_price as (
  select use_day as finding_day, 'usage_without_price' as kind,
    concat_ws('/', cluster, case when node = '' then '(no node named)' else node end) as subject,
    cast(sum(unpriced_share_seconds) as double) / 15120000 as amount
  from core.cost_daily
  where unpriced_share_seconds > 0 and bucket = 'allocated' and use_day >= $start and use_day < $end
  group by use_day, cluster, node
),
over_subscribed as (
  select date_trunc('day', use_hour) as finding_day, 'over_subscribed' as kind, concat_ws('/', cluster, node) as subject,
    cast(-sum(share_seconds) as double) / 15120000 as amount
  from core.bucket_hourly
  where bucket = 'over_subscribed' and use_hour >= $start and use_hour < $end
  group by date_trunc('day', use_hour), cluster, node
),
with_telemetry as (
  select distinct cluster from core.activity_hourly
),
gap as (
  select date_trunc('day', b.use_hour) as finding_day, 'telemetry_gap' as kind, concat_ws('/', b.cluster, b.node) as subject,
    cast(sum(b.share_seconds) as double) / 15120000 as amount
  from core.bucket_hourly as b
  join with_telemetry as t on t.cluster = b.cluster
  where b.bucket = 'allocated_unmeasured' and b.use_hour >= $start and b.use_hour < $end
  group by date_trunc('day', b.use_hour), b.cluster, b.node
  having sum(b.share_seconds) >= 15120000
),
seen_only as (
  select date_trunc('day', use_hour) as finding_day, 'capacity_from_telemetry' as kind, concat_ws('/', cluster, node) as subject,
    cast(sum(capacity_share_seconds) as double) / 15120000 as amount
  from core.capacity_hourly
  where not is_inventoried and use_hour >= $start and use_hour < $end
  group by date_trunc('day', use_hour), cluster, node
),
outside as (
  select date_trunc('day', a.use_hour) as finding_day, 'activity_outside_allocation' as kind, concat_ws('/', a.cluster, a.node) as subject,
    cast(sum(cast(bit_count(a.active_mask) as bigint) * 60) as double) / 3600 as amount
  from core.activity_hourly as a
  where a.active_mask <> 0 and a.use_hour >= $start and a.use_hour < $end
    and not exists (select 1 from core.run_hourly as r where r.cluster = a.cluster and r.node = a.node and r.use_hour = a.use_hour)
  group by date_trunc('day', a.use_hour), a.cluster, a.node
),
billed as (
  select date_trunc('day', charge_period_start_at) as finding_day, split_part(bill, '/', 1) as issuer, effective_micros,
    case
      when service_category in ('Compute', 'AI and Machine Learning', 'owned')
        then coalesce(resource_id, service_name, charge_description)
      else coalesce(service_name, charge_description, resource_id, '(nothing named)')
    end as resource
  from core.charge
  where placed_as = 'unmatched' and charge_id not like 'rounding/%' and charge_period_start_at >= $start and charge_period_start_at < $end
),
told_of as (
  select finding_day, effective_micros,
    case when resource like concat(issuer, ' %') then resource else concat_ws(' ', issuer, resource) end as subject
  from billed
),
unmatched as (
  select finding_day, 'charge_without_node' as kind, subject, cast(sum(effective_micros) as double) / 1000000 as amount
  from told_of
  group by finding_day, subject
  having sum(effective_micros) is distinct from 0
),
unused as (
  select date_trunc('day', charge_period_start_at) as finding_day, 'unused_commitment' as kind, split_part(bill, '/', 1) as subject,
    cast(sum(effective_micros) as double) / 1000000 as amount
  from core.charge
  where placed_as = 'unused_commitment' and charge_period_start_at >= $start and charge_period_start_at < $end
  group by date_trunc('day', charge_period_start_at), split_part(bill, '/', 1)
),
no_rate as (
  select date_trunc('day', charge_period_start_at) as finding_day, 'missing_exchange_rate' as kind,
    concat_ws(' ', currency, strftime(billing_period_month, '%Y-%m')) as subject,
    cast(sum(effective_amount) as double) as amount
  from staged.charge
  where fx_rate is null and charge_period_start_at >= $start and charge_period_start_at < $end
  group by date_trunc('day', charge_period_start_at), concat_ws(' ', currency, strftime(billing_period_month, '%Y-%m'))
),
negative as (
  select date_trunc('day', charge_period_start_at) as finding_day, 'negative_usage' as kind,
    concat_ws(' ', issuer, coalesce(resource_id, charge_description, service_name, '(nothing named)')) as subject,
    cast(sum(coalesce(consumed_quantity, pricing_quantity)) as double) as amount
  from staged.charge
  where charge_category = 'Usage' and charge_class is null and coalesce(consumed_quantity, pricing_quantity) < 0
    and charge_period_start_at >= $start and charge_period_start_at < $end
  group by date_trunc('day', charge_period_start_at),
    concat_ws(' ', issuer, coalesce(resource_id, charge_description, service_name, '(nothing named)'))
),
endless as (
  select date_trunc('day', started_at) as finding_day, 'run_without_end' as kind, concat_ws('/', cluster, run_id) as subject, 1.0 as amount
  from staged.run
  where is_final and ended_at is null and started_at >= $start and started_at < $end
  group by date_trunc('day', started_at), cluster, run_id
),
only_steps as (
  select date_trunc('day', started_at) as finding_day, 'run_known_by_steps' as kind,
    concat_ws('/', cluster, coalesce(account, '(no account)')) as subject, cast(count(*) as double) as amount
  from staged.run
  where is_from_step and started_at >= $start and started_at < $end
  group by date_trunc('day', started_at), cluster, coalesce(account, '(no account)')
),
unknown_card as (
  select date_trunc('day', r.started_at) as finding_day, 'mig_card_unknown' as kind, concat_ws('/', r.cluster, p.node, p.mig_profile) as subject,
    cast(count(*) as double) as amount
  from staged.run as r
  join events.run_placed as p on p.placement_id = r.placement_id
  where p.mig_profile is not null and r.started_at >= $start and r.started_at < $end
    and not exists (select 1 from staged.gpu_inventory as i where i.cluster = r.cluster and i.node = p.node and i.mig_profile = p.mig_profile)
    and not exists (select 1 from reference.mig_weight as w where w.gpu_model = p.gpu_model and w.mig_profile = p.mig_profile)
  group by date_trunc('day', r.started_at), r.cluster, p.node, p.mig_profile
),
lost_unknown as (
  select date_trunc('day', h.use_hour) as finding_day, 'lost_work_unknown' as kind,
    concat_ws('/', h.cluster, coalesce(h.account, '(no account)')) as subject,
    cast(sum(h.share_seconds - coalesce(l.lost_share_seconds, 0)) as double) / 15120000 as amount
  from core.lost_work_attempt as a
  join core.run_hourly as h on h.cluster = a.cluster and h.run_id = a.run_id and h.started_at = a.started_at
    and (a.lost_until_at is null or h.use_hour < a.lost_until_at)
  left join core.lost_work_hourly as l on l.cluster = h.cluster and l.run_id = h.run_id and l.started_at = h.started_at
    and l.node = h.node and l.gpu_model = h.gpu_model and l.mig_profile = h.mig_profile and l.use_hour = h.use_hour
    and l.use_hour >= $start and l.use_hour < $end
  where a.lost_from_at is null and h.use_hour >= $start and h.use_hour < $end
  group by date_trunc('day', h.use_hour), h.cluster, coalesce(h.account, '(no account)')
  having sum(h.share_seconds - coalesce(l.lost_share_seconds, 0)) > 0
)
select finding_day, kind, subject, amount from no_owner
union all select finding_day, kind, subject, amount from no_price
union all select finding_day, kind, subject, amount from over_subscribed
union all select finding_day, kind, subject, amount from gap
union all select finding_day, kind, subject, amount from seen_only
union all select finding_day, kind, subject, amount from outside
union all select finding_day, kind, subject, amount from unmatched
union all select finding_day, kind, subject, amount from unused
union all select finding_day, kind, subject, amount from no_rate
union all select finding_day, kind, subject, amount from negative
union all select finding_day, kind, subject, amount from endless
union all select finding_day, kind, subject, amount from only_steps
union all select finding_day, kind, subject, amount from unknown_card
union all select finding_day, kind, subject, amount from lost_unknown
