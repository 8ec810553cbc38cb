-- Allocated GPU time of a month by team, how much of what was measured showed no activity, and what that part cost.
select business_unit, team, cast(sum(share_seconds) as double) / 15120000 as gpu_hours,
  case when sum(share_seconds) > 0 then 1 - cast(sum(unmeasured_share_seconds) as double) / sum(share_seconds) end as measured_ratio,
  case when sum(share_seconds) > sum(unmeasured_share_seconds)
    then cast(sum(idle_share_seconds) as double) / 15120000 end as idle_gpu_hours,
  case when sum(share_seconds) > sum(unmeasured_share_seconds)
    then cast(sum(idle_share_seconds) as double) / (sum(share_seconds) - sum(unmeasured_share_seconds)) end as idle_ratio,
  case when sum(share_seconds) > sum(unmeasured_share_seconds)
    then cast(cast(sum(cost_micros) as hugeint) * sum(idle_share_seconds) // sum(share_seconds)
      * cast(0.000001 as decimal(7, 6)) as decimal(18, 2)) end as idle_cost
from core.line_daily
where cost_kind = 'usage' and cost_day >= cast($month as timestamptz)
  and cost_day < cast($month as timestamptz) + interval 1 month and ($cluster is null or cluster = $cluster)
group by business_unit, team
having sum(share_seconds) > 0
order by idle_gpu_hours desc nulls last, gpu_hours desc, team
