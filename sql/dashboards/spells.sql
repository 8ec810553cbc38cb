-- Attempts of runs with how long each was up and whether an interruption ended it, by group, in the order in which they began.
select run_id, concat_ws(' · ', cluster, partition, workload_class, gpu_model) as "group", up_seconds, is_interrupted, interrupted_at,
  gpu_count as gpus
from marts.run_spell
order by started_at, cluster, run_id
