/*
grain: one row per commitment and month in which it was in force or billed; and, with an empty commitment_id, one per provider and month for GPU time bought on demand
keys: [provider, commitment_id, bill_month]
partition_by: null
stored: view
units: {committed: reporting currency, used: reporting currency, unused: reporting currency, on_demand: reporting currency}
columns:
  provider: who sold it, in small letters
  commitment_id: the provider's id of the commitment; empty for GPU time that no commitment covered
  bill_month: month of the bill, or in which it was in force
  committed: what its contract obliges to pay for the month, what was paid upfront spread evenly over the term; NULL where no contract is recorded, or its price is unknown
  used: what the bill says was used of it, amortised; NULL where no bill names it
  unused: what the bill says was paid for and not used, amortised; NULL where no bill names it
  on_demand: what the same GPU time costs at the on-demand price; NULL where the bill does not say
invariants: {}
*/
-- Owned GPUs are on no bill: how much of them was used stands in marts.bucket_daily. The contract counts by the hours that it
-- was in force within what the ledger knows; of what was paid upfront the part up to any instant is exact to a micro.
with line as (
  select lower(coalesce(provider, issuer)) as provider, commitment_discount_id as commitment_id,
    commitment_discount_status as status, billing_period_month as bill_month, effective_micros, list_micros
  from staged.charge
  where commitment_discount_id is not null and commitment_discount_status in ('Used', 'Unused')
),
node as (
  select coalesce(resource_id, node) as resource from staged.gpu_inventory
  union
  select node from staged.gpu_inventory
),
billed as (
  select provider, commitment_id, bill_month,
    case when count(effective_micros) = count(*)
      then cast(coalesce(sum(case when status = 'Used' then effective_micros end), 0) as bigint) end as used_micros,
    case when count(effective_micros) = count(*)
      then cast(coalesce(sum(case when status = 'Unused' then effective_micros end), 0) as bigint) end as unused_micros,
    case when count(case when status = 'Used' then list_micros end) = count(case when status = 'Used' then 1 end)
      then cast(sum(case when status = 'Used' then list_micros end) as bigint) end as on_demand_micros
  from line
  group by provider, commitment_id, bill_month
),
uncovered as (
  select lower(coalesce(c.provider, c.issuer)) as provider, '' as commitment_id, c.billing_period_month as bill_month,
    case when count(c.list_micros) = count(*) then cast(sum(c.list_micros) as bigint) end as on_demand_micros
  from staged.charge as c
  where c.charge_category = 'Usage' and c.charge_class is null and c.pricing_category = 'Standard'
    and (c.resource_id in (select resource from node) or c.resource_name in (select resource from node))
  group by lower(coalesce(c.provider, c.issuer)), c.billing_period_month
),
month as (
  select lower(c.provider) as provider, c.commitment_id, c.starts_at, c.ends_at, c.gpu_count, c.hourly_commitment_micros,
    c.hourly_micros, c.upfront_micros, l.known_from_at, l.known_until_at,
    unnest(generate_series(
      date_trunc('month', greatest(c.starts_at, l.known_from_at)),
      least(c.ends_at, l.known_until_at) - interval 1 second, interval 1 month)) as month_at
  from staged.commitment as c
  cross join reference.ledger as l
  where c.state <> 'cancelled'
),
bounded as (
  select provider, commitment_id, cast(month_at as date) as bill_month, gpu_count, hourly_commitment_micros, hourly_micros,
    upfront_micros, date_diff('second', starts_at, ends_at) as whole_seconds,
    date_diff('second', starts_at, greatest(starts_at, known_from_at, month_at)) as from_seconds,
    date_diff('second', starts_at, least(ends_at, known_until_at, month_at + interval 1 month)) as until_seconds
  from month
),
contracted as (
  select provider, commitment_id, bill_month,
    coalesce(hourly_commitment_micros, gpu_count * hourly_micros, case when upfront_micros is not null then 0 end)
      * (until_seconds - from_seconds) // 3600
    + cast(cast(coalesce(upfront_micros, 0) as hugeint) * until_seconds // whole_seconds
      - cast(coalesce(upfront_micros, 0) as hugeint) * from_seconds // whole_seconds as bigint) as committed_micros
  from bounded
  where until_seconds > from_seconds
),
found as (
  select coalesce(c.provider, b.provider) as provider, coalesce(c.commitment_id, b.commitment_id) as commitment_id,
    coalesce(c.bill_month, b.bill_month) as bill_month, c.committed_micros, b.used_micros, b.unused_micros, b.on_demand_micros
  from contracted as c
  full join billed as b on b.provider = c.provider and b.commitment_id = c.commitment_id and b.bill_month = c.bill_month
  union all
  select provider, commitment_id, bill_month, null, null, null, on_demand_micros from uncovered
)
select provider, commitment_id, bill_month,
  cast(cast(committed_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as committed,
  cast(cast(used_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as used,
  cast(cast(unused_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as unused,
  cast(cast(on_demand_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as on_demand
from found
