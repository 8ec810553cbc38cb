-- Warnings and assumptions of a plan, in its order.
select note_kind, setting, value, text
from marts.plan_note
where plan_id = $plan
order by note
