-- Groups of attempts, most interruptions first, with how their checkpoints went: the middle of what each held its job up.
with spell as (
  select cluster, run_id, started_at, concat_ws(' · ', cluster, partition, workload_class, gpu_model) as "group", gpu_model, gpu_count,
    is_interrupted
  from marts.run_spell
),
checkpoint as (
  select s."group", cast(median(c.blocking_seconds) as double) / 60 as checkpoint_minutes
  from (select distinct cluster, run_id, "group" from spell) as s
  join staged.checkpoint as c on c.cluster = s.cluster and c.run_id = s.run_id
  where c.blocking_seconds is not null
  group by s."group"
)
select s."group", s.gpu_model, count(*) as attempt_count, count(case when s.is_interrupted then 1 end) as interruption_count,
  cast(round(median(s.gpu_count)) as bigint) as gpus, max(c.checkpoint_minutes) as checkpoint_minutes
from spell as s
left join checkpoint as c on c."group" = s."group"
group by s."group", s.gpu_model
order by interruption_count desc, attempt_count desc, s."group"
