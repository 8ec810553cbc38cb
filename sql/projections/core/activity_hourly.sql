/*
grain: one row per device (card or MIG instance) and hour with telemetry
keys: [cluster, node, gpu_uuid, mig_instance, use_hour]
partition_by: use_hour
units: {measured_mask: one bit a minute in which a sample was taken, active_mask: one bit a minute with activity, held_mask: one bit a minute in which the exporter named a holder}
invariants:
  active_is_measured: |
    select cluster, gpu_uuid, mig_instance, use_hour from core.activity_hourly
    where bit_count(active_mask | measured_mask) > bit_count(measured_mask)
*/
-- A sample stands for its interval, laid on the hour's sixty minutes; a minute counts once however many samples name it,
-- so duplicate exporters and overlapping scrapes change nothing, and a gap is a gap. A device is active in a minute
-- when its counter (SM activity, else graphics engine, else GPU utilisation) is at least 1 %.
with sample as (
  select cluster, node, gpu_uuid, mig_instance, date_trunc('hour', sampled_at) as use_hour, gpu_model, mig_profile, holder,
    sm_active_ratio, gr_engine_active_ratio, gpu_util_ratio, board_power_watts,
    coalesce(sm_active_ratio, gr_engine_active_ratio, gpu_util_ratio) as counter_ratio,
    case
      when interval_seconds <= 60 then cast(1 as bigint) << cast(minute(sampled_at) as integer)
      when interval_seconds >= 3600 then 1152921504606846975
      else (((cast(1 as bigint) << cast(interval_seconds // 60 as integer)) - 1)
        << cast(minute(sampled_at) - minute(sampled_at) % (interval_seconds // 60) as integer)) & 1152921504606846975
    end as minutes
  from events.gpu_sampled
  where sampled_at >= $start and sampled_at < $end
)
select cluster, node, gpu_uuid, mig_instance, use_hour,
  any_value(gpu_model) as gpu_model, any_value(mig_profile) as mig_profile, max(holder) as holder,
  bit_or(case when counter_ratio is not null then minutes else 0 end) as measured_mask,
  bit_or(case when counter_ratio >= 0.01 then minutes else 0 end) as active_mask,
  bit_or(case when holder is not null then minutes else 0 end) as held_mask,
  bit_or(minutes) as seen_mask,
  avg(sm_active_ratio) as sm_active_ratio,
  avg(gr_engine_active_ratio) as gr_engine_active_ratio,
  avg(gpu_util_ratio) as gpu_util_ratio,
  avg(board_power_watts) as board_power_watts,
  cast(count(*) as bigint) as sample_count
from sample
group by cluster, node, gpu_uuid, mig_instance, use_hour
