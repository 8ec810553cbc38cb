-- GPUs of a model that commitments hold at an instant; those of commitments in money are not counted.
select coalesce(cast(sum(gpu_count) as double), 0) as gpus
from staged.commitment
where gpu_model = $model and state <> 'cancelled' and starts_at <= $at and ends_at > $at
