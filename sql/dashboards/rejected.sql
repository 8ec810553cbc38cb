-- Rows of sources that were kept aside, newest batch first; at most 1,000, and how many there are.
select r.kind, r.source, r.position, r.reason, r.raw_text, b.recorded_at, count(*) over () as row_count
from marts.rejected as r
join marts.batches as b on b.batch_id = r.batch_id
where r.kind = $kind
order by r.batch_id desc, r.source, r.position
limit 1000
