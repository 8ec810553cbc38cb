-- What a plan saves against each baseline, with its spread.
select baseline, baseline_cost, saving, low_saving, high_saving,
  case when baseline_cost > 0 then cast(saving as double) / cast(baseline_cost as double) end as saving_ratio
from marts.plan_saving
where plan_id = $plan
order by saving nulls last, baseline
