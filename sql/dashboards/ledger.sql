-- What the published file shows, and until when.
select reporting_currency, known_from_at, known_until_at, batch_id, recorded_until_at from marts.ledger
