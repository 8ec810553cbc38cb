/*
grain: one row per cluster, GPU model, workload class and hour in which GPUs were held or wanted
keys: [cluster, gpu_model, workload_class, use_hour]
partition_by: null
stored: view
units: {share_seconds: 1/4200 of a GPU for one second}
columns:
  cluster: scheduler's cluster
  gpu_model: GPU model
  workload_class: inference, rigid, deferrable or dev, by policy workload_class; unclassified where none names the run
  use_hour: hour, UTC
  held_share_seconds: GPU time that runs held, as metered; 15,120,000 are one GPU for the hour
  wanted_share_seconds: GPU time as it would have been held had every run begun when it was submitted
  is_queue_known: whether all that held GPUs in the hour says when it was submitted; where it does not, it is wanted when held
invariants: {}
*/
select cluster, gpu_model, workload_class, use_hour, held_share_seconds, wanted_share_seconds, is_queue_known
from core.demand_hourly
