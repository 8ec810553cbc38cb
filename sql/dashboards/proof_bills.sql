-- Each bill's proof, those that do not add up first.
select bill, delivered_at, line_count, cast(effective as decimal(18, 2)) as effective, cast(on_nodes as decimal(18, 2)) as on_nodes,
  cast(unused_commitment as decimal(18, 2)) as unused_commitment, cast(shared as decimal(18, 2)) as shared,
  cast(unmatched as decimal(18, 2)) as unmatched, difference
from marts.proof_by_bill
order by difference = 0, split_part(bill, '/', -1) desc, bill
