"""One sample of every GPU of this node, straight from the driver (NVML): for nodes without an exporter.

NVML knows neither SM_ACTIVE nor who holds a device; under MIG it knows no utilisation at all, and power and energy are
the board's. Field meanings: NVIDIA NVML API reference, Device Queries and Multi Instance GPU Management.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from models.errors import SourceError
from models.events import GpuSampled, polars_schema
from models.gpus import canonical_model, mig_profile
from pipelines.sources.base import Chunk, rejected_frame, rejected_row
from pipelines.sources.dcgm import epoch_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = "nvml"

_MEBIBYTE = 1 << 20


def read_nvml(
    *, cluster: str, node: str, at: datetime, interval_seconds: int = 60, nvml: Any = None
) -> Iterator[Chunk]:
    """Sample every GPU, and every MIG instance where there are some, once.

    Args:
      cluster: Cluster of this node.
      node: Name of this node as the scheduler writes it.
      at: Now.
      interval_seconds: How long the sample stands for: the pause between two calls.
      nvml: The ``pynvml`` module, or one like it; None: imported here, since only nodes with a driver need it.

    Raises:
      SourceError: There is no NVIDIA driver here, or it does not answer.
    """
    if nvml is None:
        import pynvml  # noqa: PLC0415 - only nodes with a driver need it

        nvml = pynvml
    stamp = {
        "cluster": cluster,
        "node": node,
        "sampled_at": datetime.fromtimestamp(epoch_seconds(at), UTC),
        "interval_seconds": interval_seconds,
    }
    rows: list[dict[str, Any]] = []
    rejected: list[dict[str, str]] = []
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise SourceError(f"{node}: NVML is not available ({error}): run this where the NVIDIA driver is") from error
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                rows += [stamp | one for one in _gpu(nvml, index)]
            except nvml.NVMLError as error:  # one lost card must not hide the others
                rejected.append(rejected_row(SOURCE, f"{node}:gpu {index}", f"the driver answers: {error}", ""))
    except nvml.NVMLError as error:
        raise SourceError(f"{node}: NVML does not say how many GPUs there are: {error}") from error
    finally:
        nvml.nvmlShutdown()
    frame = pl.DataFrame(rows, schema=polars_schema(GpuSampled))
    yield Chunk(events={GpuSampled: frame}, rejected=rejected_frame(rejected), rows_read=frame.height + len(rejected))


def _gpu(nvml: Any, index: int) -> list[dict[str, Any]]:
    """Rows of one card: itself, or its MIG instances.

    Raises:
      nvml.NVMLError: The card does not answer.
    """

    def ask(question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_NotFound):  # of an empty MIG slot: not found
            return None

    card = nvml.nvmlDeviceGetHandleByIndex(index)
    mode = ask(nvml.nvmlDeviceGetMigMode, card)
    is_mig = mode is not None and mode[0] == nvml.NVML_DEVICE_MIG_ENABLE
    rates = None if is_mig else ask(nvml.nvmlDeviceGetUtilizationRates, card)
    milliwatts = ask(nvml.nvmlDeviceGetPowerUsage, card)
    millijoules = ask(nvml.nvmlDeviceGetTotalEnergyConsumption, card)
    board = {
        "gpu_uuid": nvml.nvmlDeviceGetUUID(card),
        "mig_instance": "",
        "gpu_index": str(index),
        "gpu_model": canonical_model(nvml.nvmlDeviceGetName(card)),
        "gpu_util_ratio": None if rates is None else rates.gpu / 100,
        "board_power_watts": None if milliwatts is None else milliwatts / 1_000,
        "board_energy_joules": None if millijoules is None else millijoules / 1_000,
    }
    slots = range(nvml.nvmlDeviceGetMaxMigDeviceCount(card)) if is_mig else ()
    devices = [device for slot in slots if (device := ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, card, slot))]
    found: dict[str, dict[str, Any]] = {}
    for device in devices:
        # Several compute instances may share one GPU instance, and its memory: the first stands for it.
        instance = str(nvml.nvmlDeviceGetGpuInstanceId(device))
        profile = mig_profile(nvml.nvmlDeviceGetName(device))
        found.setdefault(instance, {"mig_instance": instance, "mig_profile": profile, **_memory(nvml, ask, device)})
    return [board | one for one in found.values()] or [board | _memory(nvml, ask, card)]


def _memory(nvml: Any, ask: Callable[..., Any], device: Any) -> dict[str, float | None]:
    """Memory used. Version 2 of the query leaves out what the driver reserves, as DCGM_FI_DEV_FB_USED does."""
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, device, nvml.nvmlMemory_v2)
    return {"framebuffer_used_mib": None if memory is None else memory.used / _MEBIBYTE}
