from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from models.errors import SourceError
from models.events import GpuSampled, polars_schema
from pipelines.sources.nvml import read_nvml

if TYPE_CHECKING:
    from pipelines.sources.base import Chunk

NOW = datetime(2026, 3, 1, 12, 0, 0, 999, tzinfo=UTC)
MEBIBYTE = 1 << 20


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818 - the library's names
    pass


class NVMLError_NotFound(NVMLError):  # noqa: N801, N818
    pass


class Driver:
    """The part of pynvml that we ask, over cards given as what the driver would answer; a card left out is lost."""

    NVMLError, NVMLError_NotSupported, NVMLError_NotFound = NVMLError, NVMLError_NotSupported, NVMLError_NotFound
    NVML_DEVICE_MIG_ENABLE = 1
    nvmlMemory_v2 = 33554472  # noqa: N815

    def __init__(self, *cards: dict[str, Any] | None, is_installed: bool = True) -> None:
        self.cards = cards
        self.is_installed = is_installed
        self.is_open = False

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.is_installed:
            raise NVMLError("NVML Shared Library Not Found")
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:  # noqa: N802
        card = self.cards[index]
        if card is None:
            raise NVMLError("GPU is lost")
        return card

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: dict[str, Any], slot: int) -> dict[str, Any]:  # noqa: N802
        if slot >= len(card["instances"]):
            raise NVMLError_NotFound("Not Found")
        found: dict[str, Any] = card["instances"][slot]
        return found

    def nvmlDeviceGetMaxMigDeviceCount(self, card: dict[str, Any]) -> int:  # noqa: N802
        return len(card["instances"]) + 5  # more slots than are filled

    def nvmlDeviceGetMemoryInfo(self, device: dict[str, Any], version: int) -> Any:  # noqa: N802
        assert version == self.nvmlMemory_v2
        return device["Memory"]

    def __getattr__(self, question: str) -> Any:
        """The plain questions, such as nvmlDeviceGetUUID: what the device has under that name."""
        answer = question.removeprefix("nvmlDeviceGet")

        def ask(device: dict[str, Any]) -> Any:
            if answer not in device:
                raise NVMLError_NotSupported("Not Supported")
            return device[answer]

        return ask


def memory(mebibytes: int) -> Any:
    return SimpleNamespace(used=mebibytes * MEBIBYTE)


WHOLE = {
    "UUID": "GPU-1", "Name": "NVIDIA H200", "MigMode": [0, 0], "UtilizationRates": SimpleNamespace(gpu=87, memory=3),
    "PowerUsage": 432_100, "TotalEnergyConsumption": 57_585_599, "Memory": memory(4_384),
}  # fmt: skip
SLICED = WHOLE | {
    "UUID": "GPU-2", "Name": "NVIDIA A100-SXM4-40GB", "MigMode": [1, 1], "Memory": memory(5_000),
    "instances": [
        {"GpuInstanceId": 5, "Name": "NVIDIA A100-SXM4-40GB MIG 2g.10gb", "Memory": memory(153)},
        {"GpuInstanceId": 9, "Name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "Memory": memory(98)},
    ],
}  # fmt: skip


def read(driver: Driver) -> Chunk:
    (chunk,) = read_nvml(cluster="c1", node="n1", at=NOW, nvml=driver)
    assert not driver.is_open
    return chunk


def rows(driver: Driver, *names: str) -> list[tuple[Any, ...]]:
    return read(driver).events[GpuSampled].select(names).rows()


def test_a_whole_gpu_is_one_sample_in_the_ledgers_units() -> None:
    events = read(Driver(WHOLE)).events[GpuSampled]
    assert events.schema == polars_schema(GpuSampled)
    assert events.to_dicts() == [
        {
            "cluster": "c1", "gpu_uuid": "GPU-1", "mig_instance": "", "sampled_at": NOW.replace(microsecond=0),
            "node": "n1", "gpu_index": "0", "gpu_model": "H200-141GB", "mig_profile": None, "interval_seconds": 60,
            "gpu_util_ratio": 0.87, "sm_active_ratio": None, "gr_engine_active_ratio": None,
            "tensor_active_ratio": None, "framebuffer_used_mib": 4384.0, "board_power_watts": 432.1,
            "board_energy_joules": 57585.599, "holder": None,
        }
    ]  # fmt: skip


def test_under_mig_each_instance_is_a_sample_without_utilisation_and_with_the_boards_power() -> None:
    names = ("gpu_uuid", "mig_instance", "mig_profile", "gpu_util_ratio", "framebuffer_used_mib", "board_power_watts")
    assert rows(Driver(SLICED), *names) == [
        ("GPU-2", "5", "2g.10gb", None, 153.0, 432.1),
        ("GPU-2", "9", "1g.5gb", None, 98.0, 432.1),
    ]


def test_a_card_in_mig_mode_without_instances_is_one_sample() -> None:
    assert rows(Driver(SLICED | {"instances": []}), "mig_instance", "gpu_util_ratio") == [("", None)]


def test_two_compute_instances_in_one_gpu_instance_are_one_sample() -> None:
    (instance, _) = SLICED["instances"]
    assert rows(Driver(SLICED | {"instances": [instance, instance]}), "mig_instance") == [("5",)]


def test_what_a_card_does_not_support_is_unknown() -> None:
    old = {"UUID": "GPU-3", "Name": "Tesla T4", "Memory": memory(5)}
    names = ("gpu_model", "gpu_util_ratio", "board_power_watts", "board_energy_joules")
    assert rows(Driver(old), *names) == [("T4", None, None, None)]


def test_a_lost_card_is_rejected_and_the_others_are_read() -> None:
    chunk = read(Driver(None, WHOLE))
    assert chunk.events[GpuSampled]["gpu_index"].to_list() == ["1"]
    assert chunk.rejected.select("position", "reason").rows() == [("n1:gpu 0", "the driver answers: GPU is lost")]
    assert chunk.rows_read == 2


def test_a_node_without_driver_is_an_error_that_says_so() -> None:
    with pytest.raises(SourceError, match=r"NVML is not available \(NVML Shared Library Not Found\)"):
        read(Driver(WHOLE, is_installed=False))
