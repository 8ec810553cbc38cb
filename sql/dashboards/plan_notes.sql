-- Warnings and assumptions of a plan, in its order.
select note_kind, text
from marts.plan_note
where plan_id = $plan and note_kind <> 'stress'
order by note
