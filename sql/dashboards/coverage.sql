-- How complete the facts of a month are, by cluster: part of allocated GPU time with a known cost, and with telemetry.
select cast(date_trunc('month', cost_day) as date) as charge_month, cluster,
  cast(sum(share_seconds) as double) / 15120000 as gpu_hours,
  1 - cast(sum(unpriced_share_seconds) as double) / sum(share_seconds) as priced_ratio,
  1 - cast(sum(unmeasured_share_seconds) as double) / sum(share_seconds) as measured_ratio
from core.line_daily
where cost_kind = 'usage'
group by cast(date_trunc('month', cost_day) as date), cluster
having sum(share_seconds) > 0
order by charge_month desc, cluster
