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
-- A sample that was stated anew counts in its newest version; that is looked for only in hours that several batches tell of.
with retold as (
  select cluster, date_trunc('hour', sampled_at) as use_hour
  from events.gpu_sampled
  where sampled_at >= $start and sampled_at < $end
  group by cluster, date_trunc('hour', sampled_at)
  having min(batch_id) <> max(batch_id)
),
version as (
  select s.cluster, s.gpu_uuid, s.mig_instance, s.sampled_at, s.version_at, s.batch_id,
    row_number() over (
      partition by s.cluster, s.gpu_uuid, s.mig_instance, s.sampled_at order by s.version_at desc, s.batch_id desc) as version_rank
  from events.gpu_sampled as s
  semi join retold as t on t.cluster = s.cluster and t.use_hour = date_trunc('hour', s.sampled_at)
  where s.sampled_at >= $start and s.sampled_at < $end
),
newest as (
  select cluster, gpu_uuid, mig_instance, sampled_at, version_at, batch_id
  from version
  where version_rank = 1
),
sample as (
  select s.cluster, s.node, s.gpu_uuid, s.mig_instance, date_trunc('hour', s.sampled_at) as use_hour, s.gpu_model, s.mig_profile,
    s.holder, s.sm_active_ratio, s.gr_engine_active_ratio, s.gpu_util_ratio, s.board_power_watts,
    coalesce(s.sm_active_ratio, s.gr_engine_active_ratio, s.gpu_util_ratio) as counter_ratio,
    case
      when s.interval_seconds <= 60 then cast(1 as bigint) << cast(minute(s.sampled_at) as integer)
      when s.interval_seconds >= 3600 then 1152921504606846975
      else (((cast(1 as bigint) << cast(s.interval_seconds // 60 as integer)) - 1)
        << cast(minute(s.sampled_at) - minute(s.sampled_at) % (s.interval_seconds // 60) as integer)) & 1152921504606846975
    end as minutes
  from events.gpu_sampled as s
  left join newest as n on n.cluster = s.cluster and n.gpu_uuid = s.gpu_uuid and n.mig_instance = s.mig_instance
    and n.sampled_at = s.sampled_at
  where s.sampled_at >= $start and s.sampled_at < $end
    and (n.batch_id is null or n.version_at = s.version_at and n.batch_id = s.batch_id)
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
