-- What was appended to the event log, newest first.
select batch_id, recorded_at, source, source_window, rows_read, rows_appended, rows_duplicate, rows_ignored, rows_set_aside,
  rows_rejected, digest
from marts.batches
order by batch_id desc
