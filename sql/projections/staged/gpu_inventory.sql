/*
grain: one row per node, GPU model, MIG profile and stretch of time in which the node's inventory did not change
keys: [cluster, node, gpu_model, mig_layout, mig_profile, from_at]
partition_by: null
units: {device_shares: parts of a GPU after scaling, stranded_shares: parts of a GPU that no slice of the card can use}
invariants:
  slices_fit_their_card: |
    select cluster, node, gpu_model, mig_layout, from_at from staged.gpu_inventory
    group by cluster, node, gpu_model, mig_layout, from_at
    having sum(slices_per_card_count * device_shares) + max(stranded_shares) <> 4200
*/
-- What is said of a node from an instant on replaces all that was said of it before. A MIG card whose slices weigh more
-- than one GPU is scaled down; what they leave of it is stranded.
with version as (
  select
    cluster, node, gpu_model, mig_layout, mig_profile, effective_from_at, effective_until_at, card_count,
    slices_per_card_count, resource_id, capacity_type,
    row_number() over (
      partition by cluster, node, gpu_model, mig_layout, mig_profile, effective_from_at
      order by version_at desc, batch_id desc, card_count desc, slices_per_card_count desc
    ) as age
  from events.gpu_inventoried
),
statement as (
  select cluster, node, effective_from_at, max(effective_until_at) as stated_until_at,
    count(*) filter (where effective_until_at is null) as open_count
  from version where age = 1
  group by cluster, node, effective_from_at
),
stretch as (
  select cluster, node, effective_from_at,
    case when open_count = 0 then stated_until_at end as stated_until_at,
    lead(effective_from_at) over (partition by cluster, node order by effective_from_at) as next_from_at
  from statement
),
weighed as (
  select v.cluster, v.node, v.gpu_model, v.mig_layout, v.mig_profile, v.effective_from_at, v.card_count,
    v.slices_per_card_count, v.resource_id, v.capacity_type,
    case
      when v.mig_profile = '' then 4200
      when p.value = 'compute' then coalesce(w.compute_shares, n.compute_shares)
      else coalesce(w.max_shares, n.compute_shares)
    end as full_shares
  from version as v
  left join reference.mig_weight as w on w.gpu_model = v.gpu_model and w.mig_profile = v.mig_profile
  left join reference.named_weight as n on n.mig_profile = v.mig_profile
  left join reference.policy_now as p on p.policy = 'mig_weight'
  where v.age = 1 and v.card_count > 0
),
card as (
  select cluster, node, gpu_model, mig_layout, effective_from_at,
    cast(sum(slices_per_card_count * full_shares) as bigint) as card_shares
  from weighed
  group by cluster, node, gpu_model, mig_layout, effective_from_at
),
scaled as (
  select w.cluster, w.node, w.gpu_model, w.mig_layout, w.mig_profile, w.effective_from_at, w.card_count,
    w.slices_per_card_count, w.resource_id, w.capacity_type,
    case when c.card_shares > 4200 then w.full_shares * 4200 // c.card_shares else w.full_shares end as device_shares
  from weighed as w
  join card as c on c.cluster = w.cluster and c.node = w.node and c.gpu_model = w.gpu_model
    and c.mig_layout = w.mig_layout and c.effective_from_at = w.effective_from_at
)
select
  s.cluster, s.node, s.gpu_model, s.mig_layout, s.mig_profile,
  s.effective_from_at as from_at,
  least(coalesce(t.stated_until_at, timestamptz '9999-01-01 00:00:00+00'),
        coalesce(t.next_from_at, timestamptz '9999-01-01 00:00:00+00')) as until_at,
  s.card_count, s.slices_per_card_count,
  cast(s.device_shares as bigint) as device_shares,
  cast(4200 - sum(s.slices_per_card_count * s.device_shares) over (
    partition by s.cluster, s.node, s.gpu_model, s.mig_layout, s.effective_from_at) as bigint) as stranded_shares,
  row_number() over (
    partition by s.cluster, s.node, s.gpu_model, s.mig_layout, s.effective_from_at order by s.mig_profile) as profile_rank,
  s.resource_id, s.capacity_type
from scaled as s
join stretch as t on t.cluster = s.cluster and t.node = s.node and t.effective_from_at = s.effective_from_at
