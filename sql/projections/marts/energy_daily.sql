/*
grain: one row per day and physical card
keys: [use_day, cluster, node, gpu_uuid]
partition_by: use_day
units: {energy_joules: energy of the card, board_power_watts: mean power while seen}
columns:
  use_day: UTC day
  cluster: cluster
  node: node
  gpu_uuid: UUID of the physical card; a MIG card counts once
  gpu_model: GPU model
  seen_seconds: seconds with a power sample
  board_power_watts: mean power of the board while it was seen
  energy_joules: mean power times the seconds seen
invariants: {}
*/
select cast(date_trunc('day', use_hour) as date) as use_day, cluster, node, gpu_uuid, max(gpu_model) as gpu_model,
  cast(sum(seen_seconds) as bigint) as seen_seconds, avg(board_power_watts) as board_power_watts,
  sum(energy_joules) as energy_joules
from core.energy_hourly
where use_hour >= $start and use_hour < $end
group by cast(date_trunc('day', use_hour) as date), cluster, node, gpu_uuid
