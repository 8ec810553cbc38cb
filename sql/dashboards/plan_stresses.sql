-- What a plan's purchases would cost in other worlds, and what it would cost without them; the text where it says no amounts.
with told as (
  select note, text, regexp_extract(text, '^if (.+): ([−0-9.,]+) \S+ with the purchases, ([−0-9.,]+) without', ['world', 'held', 'without']) as said
  from marts.plan_note
  where plan_id = $plan and note_kind = 'stress'
),
read as (
  select note, case when said.world = '' then text else said.world end as world,
    try_cast(replace(replace(said.held, ',', ''), '−', '-') as decimal(18, 2)) as with_purchases,
    try_cast(replace(replace(said.without, ',', ''), '−', '-') as decimal(18, 2)) as without_purchases
  from told
)
select concat(upper(left(world, 1)), substr(world, 2)) as world, with_purchases, without_purchases, without_purchases - with_purchases as saving
from read
order by note
