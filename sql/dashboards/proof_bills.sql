-- Each bill's proof in all six places, those that do not add up first; the page rounds to cents that add up.
select bill, delivered_at, line_count, effective, on_nodes, unused_commitment, shared, unmatched, difference
from marts.proof_by_bill
order by difference = 0, split_part(bill, '/', -1) desc, bill
