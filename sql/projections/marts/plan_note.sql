/*
grain: one row per note of a recommended plan
keys: [plan_id, note]
partition_by: null
units: {}
columns:
  plan_id: as in marts.plan
  note: position, counted from 1
  note_kind: warning or assumption
  setting: of an assumption, its key in plan.yaml; NULL where it has none
  value: of an assumption, the value of that key
  text: in words
invariants: {}
*/
with version as (
  select plan_id, note, note_kind, setting, value, text,
    row_number() over (partition by plan_id, note order by version_at desc, batch_id desc) as age
  from events.plan_noted
)
select plan_id, note, note_kind, setting, value, text
from version
where age = 1
