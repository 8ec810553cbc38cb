-- Closed months, newest first, with the digest of what each close posted.
select period_month, closed_at, cast(billed_micros * cast(0.000001 as decimal(7, 6)) as decimal(18, 2)) as billed, log_batch_id,
  postings_digest
from marts.period_closed
order by period_month desc
