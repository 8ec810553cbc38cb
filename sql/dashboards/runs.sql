-- Runs of a project that held GPUs in a month, costliest first; at most 1,000, and how many there are.
select run_id, user_name, cluster, gpu_model, mig_profile, final_state, started_at, ended_at, gpu_hours,
  cast(cost as decimal(18, 2)) as cost, count(*) over () as run_count
from marts.run_usage
where business_unit = $unit and team = $team and case when project = '' then '(no project)' else project end = $project
  and started_at < cast($month as timestamptz) + interval 1 month
  and coalesce(ended_at, timestamptz '9999-01-01 00:00:00+00') > cast($month as timestamptz)
order by cost desc nulls last, gpu_hours desc, started_at, run_id
limit 1000
