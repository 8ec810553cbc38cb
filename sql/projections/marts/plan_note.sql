/*
grain: one row per note of a recommended plan
keys: [plan_id, note]
partition_by: null
units: {}
columns:
  plan_id: as in marts.plan
  note: position, counted from 1
  note_kind: warning, stress (the purchases in another world) or assumption
  text: in words
invariants: {}
*/
with version as (
  select plan_id, note, note_kind, text,
    row_number() over (partition by plan_id, note order by version_at desc, batch_id desc) as age
  from events.plan_noted
)
select plan_id, note, note_kind, text
from version
where age = 1
