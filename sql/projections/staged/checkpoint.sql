/*
grain: one row per checkpoint of a run
keys: [cluster, run_id, saved_at]
partition_by: saved_at
units: {}
columns:
  cluster: cluster
  run_id: run, as in run_recorded
  saved_at: when the checkpoint was complete
  blocking_seconds: time the job stood still for it
  size_mib: size
invariants: {}
*/
with version as (
  select cluster, run_id, saved_at, blocking_seconds, size_mib,
    row_number() over (
      partition by cluster, run_id, saved_at order by version_at desc, batch_id desc, blocking_seconds, size_mib) as age
  from events.checkpoint_saved
  where saved_at >= $start and saved_at < $end
)
select cluster, run_id, saved_at, blocking_seconds, size_mib
from version
where age = 1
