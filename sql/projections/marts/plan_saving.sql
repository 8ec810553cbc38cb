/*
grain: one row per recommended plan and baseline
keys: [plan_id, baseline]
partition_by: null
units: {saving: reporting currency}
columns:
  plan_id: as in marts.plan
  baseline: what the plan is compared with
  baseline_cost: expected discounted cost of the baseline; NULL where it has no price
  saving: expected saving; negative where the plan costs more
  low_saving: 5th percentile of the saving over the scenarios
  high_saving: 95th percentile of the saving over the scenarios
invariants: {}
*/
with version as (
  select plan_id, baseline, baseline_cost_micros, saving_micros, low_micros, high_micros,
    row_number() over (partition by plan_id, baseline order by version_at desc, batch_id desc) as age
  from events.plan_saving_estimated
)
select plan_id, baseline,
  cast(cast(baseline_cost_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as baseline_cost,
  cast(cast(saving_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as saving,
  cast(cast(low_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as low_saving,
  cast(cast(high_micros as decimal(18, 0)) * cast(0.000001 as decimal(7, 6)) as decimal(18, 6)) as high_saving
from version
where age = 1
