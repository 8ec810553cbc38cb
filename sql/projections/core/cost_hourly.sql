/*
grain: one row per node, hour and claimant (an attempt on one pool of devices, or a bucket that nobody holds)
keys: [cluster, node, use_hour, gpu_model, mig_profile, bucket, run_id, started_at]
partition_by: use_hour
units: {cost_micros: the claimant's part of the node's cost; NULL where the node has none, share_seconds: 1/4200 of a GPU for one second}
invariants:
  a_node_hour_is_split_exactly: |
    select c.cluster, c.node, c.use_hour, sum(c.cost_micros) as split, max(n.cost_micros) as cost
    from core.cost_hourly as c
    join core.node_cost_hourly as n on n.cluster = c.cluster and n.node = c.node and n.use_hour = c.use_hour
    group by c.cluster, c.node, c.use_hour having sum(c.cost_micros) <> max(n.cost_micros)
  a_node_hour_with_cost_has_claimants: |
    select n.cluster, n.node, n.use_hour, n.cost_micros from core.node_cost_hourly as n
    where n.cost_micros <> 0 and not exists (
      select 1 from core.cost_hourly as c where c.cluster = n.cluster and c.node = n.node and c.use_hour = n.use_hour)
*/
-- Largest remainder: everyone gets the floor of their exact share of the hour's cost, what is left goes one micro each to
-- the largest remainders, ties by key. A credit is split as its size and negated.
with claim as (
  select cluster, node, use_hour, gpu_model, mig_profile, 'allocated' as bucket, run_id, started_at, account, share_seconds
  from core.run_hourly
  where use_hour >= $start and use_hour < $end
  union all
  select cluster, node, use_hour, gpu_model, mig_profile, bucket, '', timestamptz '1970-01-01 00:00:00+00', null, share_seconds
  from core.bucket_hourly
  where use_hour >= $start and use_hour < $end and bucket in ('unallocated', 'down', 'stranded')
),
share as (
  select c.cluster, c.node, c.use_hour, c.gpu_model, c.mig_profile, c.bucket, c.run_id, c.started_at, c.account, c.share_seconds,
    n.cost_micros, n.list_micros, abs(n.cost_micros) as size_micros, sign(n.cost_micros) as direction,
    cast(sum(c.share_seconds) over (partition by c.cluster, c.node, c.use_hour) as bigint) as whole_share_seconds
  from claim as c
  left join core.node_cost_hourly as n on n.cluster = c.cluster and n.node = c.node and n.use_hour = c.use_hour
),
floored as (
  select cluster, node, use_hour, gpu_model, mig_profile, bucket, run_id, started_at, account, share_seconds, size_micros, direction,
    whole_share_seconds, list_micros,
    cast(cast(size_micros as hugeint) * share_seconds // whole_share_seconds as bigint) as floor_micros,
    cast(cast(size_micros as hugeint) * share_seconds % whole_share_seconds as bigint) as remainder
  from share
),
ranked as (
  select cluster, node, use_hour, gpu_model, mig_profile, bucket, run_id, started_at, account, share_seconds, size_micros, direction,
    whole_share_seconds, list_micros, floor_micros,
    row_number() over (
      partition by cluster, node, use_hour
      order by remainder desc, bucket, run_id, started_at, gpu_model, mig_profile) as turn,
    cast(sum(floor_micros) over (partition by cluster, node, use_hour) as bigint) as floors_micros
  from floored
)
select cluster, node, use_hour, gpu_model, mig_profile, bucket, run_id, started_at, account, share_seconds,
  cast(direction * (floor_micros + case when turn <= size_micros - floors_micros then 1 else 0 end) as bigint) as cost_micros,
  cast(cast(list_micros as hugeint) * share_seconds // whole_share_seconds as bigint) as list_micros
from ranked
