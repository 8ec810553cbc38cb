/*
grain: one row per physical card and hour with power or energy samples
keys: [cluster, node, gpu_uuid, use_hour]
partition_by: use_hour
units: {energy_joules: energy of the card}
invariants: {}
*/
-- Exporters repeat the board's power on every MIG instance, so a card counts once: its mean power over the minutes seen.
select cluster, node, gpu_uuid, use_hour, max(gpu_model) as gpu_model,
  avg(board_power_watts) as board_power_watts,
  cast(bit_count(bit_or(seen_mask)) as bigint) * 60 as seen_seconds,
  avg(board_power_watts) * cast(bit_count(bit_or(seen_mask)) as bigint) * 60 as energy_joules
from core.activity_hourly
where board_power_watts is not null and use_hour >= $start and use_hour < $end
group by cluster, node, gpu_uuid, use_hour
