from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from models.errors import SourceError, UsageError
from models.events import GpuSampled, polars_schema
from pipelines.sources.base import REJECTED_SCHEMA
from pipelines.sources.dcgm import holder, read_exposition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.sources.base import Chunk

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
MIG = {"GPU_I_ID": "9", "GPU_I_PROFILE": "1g.5gb", "modelName": "NVIDIA A100-SXM4-40GB"}


def line(metric: str, value: object, **labels: str) -> str:
    known = {"UUID": "GPU-9", "Hostname": "n1", "gpu": "0", "modelName": "NVIDIA H100 80GB HBM3"} | labels
    written = ",".join(f'{key}="{text}"' for key, text in known.items() if text)
    return f"{metric}{{{written}}} {value}"


@pytest.fixture
def scrape(tmp_path: Path) -> Callable[..., Chunk]:
    """Write each text to a file of its own, and read them together."""

    def write_and_read(*texts: str) -> Chunk:
        paths = [tmp_path / f"scrape{number}.prom" for number, _ in enumerate(texts)]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return read(*paths)

    return write_and_read


def read(*paths: Path) -> Chunk:
    (chunk,) = read_exposition(paths, cluster="c1", at=AT)
    return chunk


def rows(chunk: Chunk, *names: str) -> list[tuple[Any, ...]]:
    return chunk.events[GpuSampled].select(names).rows()


def reasons(chunk: Chunk) -> list[str]:
    return chunk.rejected["reason"].to_list()


def test_all_metrics_of_a_gpu_become_one_sample_in_the_ledgers_units(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape(
        "\n".join(
            [
                line("DCGM_FI_DEV_GPU_UTIL", 87),
                line("DCGM_FI_PROF_SM_ACTIVE", 0.5),
                line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.999917),
                line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.25),
                line("DCGM_FI_DEV_FB_USED", 4384),
                line("DCGM_FI_DEV_POWER_USAGE", 116.043),
                line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 57585599),
                line("DCGM_FI_DEV_GPU_TEMP", 30),
            ]
        )
    )
    assert chunk.events[GpuSampled].schema == polars_schema(GpuSampled)
    assert chunk.events[GpuSampled].to_dicts() == [
        {
            "cluster": "c1", "gpu_uuid": "GPU-9", "mig_instance": "", "sampled_at": AT, "node": "n1",
            "gpu_index": "0", "gpu_model": "H100-80GB", "mig_profile": None, "interval_seconds": 60,
            "gpu_util_ratio": 0.87, "sm_active_ratio": 0.5, "gr_engine_active_ratio": 0.999917,
            "tensor_active_ratio": 0.25, "framebuffer_used_mib": 4384.0, "board_power_watts": 116.043,
            "board_energy_joules": 57585.599, "holder": None,
        }
    ]  # fmt: skip
    assert (chunk.rows_read, chunk.rows_ignored) == (8, 1)
    assert chunk.rejected.is_empty()
    assert chunk.rejected.schema == REJECTED_SCHEMA


def test_the_labels_of_newer_exporters_are_read_as_well(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape('DCGM_FI_DEV_GPU_UTIL{gpu_uuid="GPU-1",hostname="n2",model_name="Tesla T4"} 1')
    assert rows(chunk, "gpu_uuid", "node", "gpu_model") == [("GPU-1", "n2", "T4")]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"namespace": "ml", "pod": "train-0"}, "ml/train-0"),
        ({"namespace": "", "pod": ""}, None),
        ({}, None),
        ({"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-wqqqn"}, None),
        ({"namespace": "monitoring", "pod": "dcgm-exporter-1"}, None),
        ({"namespace": "monitoring", "pod": "my-release-7", "container": "nvidia-dcgm-exporter"}, None),
        (
            {"exported_namespace": "ml", "exported_pod": "a", "namespace": "gpu-operator", "pod": "dcgm-exporter-1"},
            "ml/a",
        ),
        ({"exported_namespace": "", "exported_pod": "", "namespace": "ml", "pod": "b"}, "ml/b"),
    ],
)
def test_the_holder_is_the_workload_and_never_the_exporter(labels: dict[str, str], expected: str | None) -> None:
    assert holder(labels) == expected


def test_under_mig_a_utilisation_is_not_invented(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape("\n".join([line("DCGM_FI_DEV_GPU_UTIL", 0, **MIG), line("DCGM_FI_DEV_FB_USED", 6, **MIG)]))
    assert rows(chunk, "mig_instance", "mig_profile", "gpu_util_ratio") == [("9", "1g.5gb", None)]
    assert chunk.rows_ignored == 1


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        ("DCGM_FI_DEV_FB_USED", 9223372036854775794, "sentinel"),
        ("DCGM_FI_DEV_POWER_USAGE", 140737488355328.0, "sentinel"),
        ("DCGM_FI_DEV_GPU_UTIL", "NaN", "not a number"),
        ("DCGM_FI_DEV_GPU_UTIL", "+Inf", "not a number"),
        ("DCGM_FI_DEV_GPU_UTIL", "-Inf", "not a number"),
        ("DCGM_FI_DEV_POWER_USAGE", -1, "negative"),
        ("DCGM_FI_PROF_SM_ACTIVE", -0.1, "negative"),
        ("DCGM_FI_PROF_SM_ACTIVE", 57, "expected 0 to 1.0"),
        ("DCGM_FI_DEV_GPU_UTIL", 101, "expected 0 to 100.0"),
    ],
)
def test_a_value_that_is_no_measurement_is_unknown_and_the_rest_of_the_sample_stays(
    scrape: Callable[..., Chunk], metric: str, value: object, reason: str
) -> None:
    chunk = scrape("\n".join([line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.1), line(metric, value)]))
    ((*others, tensor),) = rows(
        chunk, "gpu_util_ratio", "sm_active_ratio", "framebuffer_used_mib", "board_power_watts", "tensor_active_ratio"
    )
    assert (set(others), tensor) == ({None}, 0.1)
    (told,) = reasons(chunk)
    assert told.startswith(reason)
    assert chunk.rejected["position"][0].endswith("scrape0.prom:2")


def test_ratios_at_both_ends_are_measurements(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape("\n".join([line("DCGM_FI_DEV_GPU_UTIL", 100), line("DCGM_FI_PROF_SM_ACTIVE", 0)]))
    assert rows(chunk, "gpu_util_ratio", "sm_active_ratio") == [(1.0, 0.0)]


def test_a_gpu_all_of_whose_values_are_blank_gives_no_sample(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape(line("DCGM_FI_DEV_FB_USED", 9223372036854775794))
    assert rows(chunk, "gpu_uuid") == []
    assert len(reasons(chunk)) == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_exporters_that_differ_one_stands_whatever_the_order(
    scrape: Callable[..., Chunk], tmp_path: Path, order: tuple[int, int]
) -> None:
    texts = [line("DCGM_FI_DEV_POWER_USAGE", 110), line("DCGM_FI_DEV_POWER_USAGE", 120)]
    chunk = scrape(*(texts[place] for place in order))
    assert rows(chunk, "board_power_watts") == [(110.0,)]
    (told,) = reasons(chunk)
    assert str(tmp_path / "scrape0.prom") in told
    assert str(tmp_path / "scrape1.prom") in told
    assert chunk.rows_ignored == 0


def test_of_two_exporters_that_agree_the_second_is_ignored(scrape: Callable[..., Chunk]) -> None:
    text = "\n".join([line("DCGM_FI_DEV_POWER_USAGE", 110), line("DCGM_FI_DEV_FB_USED", 5)])
    chunk = scrape(text, text)
    assert (chunk.events[GpuSampled].height, chunk.rows_read, chunk.rows_ignored) == (1, 4, 2)
    assert chunk.rejected.is_empty()


def test_pods_that_share_one_gpu_do_not_multiply_it(scrape: Callable[..., Chunk]) -> None:
    shared = [line("DCGM_FI_DEV_GPU_UTIL", 40, namespace="ml", pod=pod, vgpu=pod) for pod in ("b", "a")]
    chunk = scrape("\n".join(shared))
    assert rows(chunk, "gpu_util_ratio", "holder") == [(0.4, "ml/a")]
    assert chunk.rejected.is_empty()


def test_a_garbled_line_is_rejected_with_its_place(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape("\n".join(["# HELP x y", line("DCGM_FI_DEV_POWER_USAGE", 110), "...", 'DCGM_FI_DEV_FB_USED{gpu="0']))
    assert [place.rpartition(":")[2] for place in chunk.rejected["position"]] == ["3", "4"]
    assert chunk.rejected["raw_text"].to_list() == ["...", 'DCGM_FI_DEV_FB_USED{gpu="0']
    assert (chunk.rows_read, chunk.events[GpuSampled].height) == (3, 1)


@pytest.mark.parametrize("label", ["UUID", "Hostname"])
def test_a_series_without_gpu_or_node_is_rejected(scrape: Callable[..., Chunk], label: str) -> None:
    chunk = scrape(line("DCGM_FI_DEV_POWER_USAGE", 110, **{label: ""}))
    assert chunk.events[GpuSampled].is_empty()
    assert "when relabelling" in reasons(chunk)[0]


def test_a_sample_with_a_time_of_its_own_keeps_it_in_whole_seconds(scrape: Callable[..., Chunk]) -> None:
    chunk = scrape(f"{line('DCGM_FI_DEV_POWER_USAGE', 110)} 1773114089944")
    assert rows(chunk, "sampled_at") == [(datetime.fromtimestamp(1773114089, UTC),)]


def test_a_matrix_is_read_like_a_vector(scrape: Callable[..., Chunk]) -> None:
    labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "Hostname": "n1"}
    result = [{"metric": labels, "values": [[1773114060.5, "10"], [1773114120.5, "20"]]}]
    chunk = scrape(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    assert rows(chunk, "gpu_util_ratio") == [(0.1,), (0.2,)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no sample"),
        ("only a title\n", "holds no sample"),
        ('{"status": "success", "data": {"resul', "begins like JSON"),
        ('{"status": "error", "error": "query timed out"}', "query timed out"),
        ('{"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}', "scalar"),
        ('{"status": "success", "data": {"resultType": "vector", "result": [1]}}', "another shape"),
    ],
)
def test_a_file_that_is_no_scrape_is_an_error(scrape: Callable[..., Chunk], text: str, told: str) -> None:
    with pytest.raises(SourceError, match=told):
        scrape(text)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone\.prom: cannot be read"):
        read(tmp_path / "gone.prom")


def test_an_instant_without_zone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text(line("DCGM_FI_DEV_POWER_USAGE", 110))
    with pytest.raises(UsageError, match="zone"):
        list(read_exposition([tmp_path / "a.prom"], cluster="c1", at=datetime(2026, 3, 1)))  # noqa: DTZ001 - the point


def test_the_h100_scrape_has_one_held_gpu(shared_data: Path) -> None:
    chunk = read(shared_data / "dcgm-h100" / "accelerator-metrics.prom")
    held = [one for (one,) in rows(chunk, "holder") if one]
    assert held == ["dynamo-workload/vllm-agg-0-vllmdecodeworker-s65j5"]
    assert chunk.events[GpuSampled].height == 8
    assert chunk.rejected.is_empty()


def test_four_api_answers_of_one_moment_give_sixteen_samples_and_bill_nothing_to_the_exporter(
    shared_data: Path,
) -> None:
    chunk = read(*sorted((shared_data / "dcgm-h100").glob("*.json")))
    assert [one for (one,) in rows(chunk, "holder") if one] == ["dynamo-workload/vllm-agg-0-vllmdecodeworker-s65j5"]
    assert set(rows(chunk, "sampled_at")) == {(datetime.fromtimestamp(1773114089, UTC),)}
    power, memory, utilisation = (
        chunk.events[GpuSampled][name] for name in ("board_power_watts", "framebuffer_used_mib", "gpu_util_ratio")
    )
    assert (power.len(), power.null_count() + memory.null_count() + utilisation.null_count()) == (16, 0)
    assert chunk.rejected.is_empty()


@pytest.mark.parametrize(
    ("file", "instances"),
    [
        ("Active_1g.5gb.ini", 1),
        ("Idle_1g.5gb_allocated.ini", 1),
        ("Active_2_1g.5gb_+_2g.10gb.ini", 3),
        ("4_Active_Workloads.ini", 4),
    ],
)
def test_mig_instances_of_one_card_share_its_uuid_and_energy(shared_data: Path, file: str, instances: int) -> None:
    chunk = read(shared_data / "dcgm-a100-mig" / file)
    events = chunk.events[GpuSampled]
    assert (events.height, events["gpu_uuid"].n_unique(), events["board_energy_joules"].n_unique()) == (instances, 1, 1)
    assert events["mig_instance"].n_unique() == instances
    assert events["gpu_util_ratio"].null_count() == instances
    assert events["holder"].null_count() == instances
    assert chunk.rejected.is_empty()


def test_three_instances_repeat_the_boards_power_and_energy(shared_data: Path) -> None:
    chunk = read(shared_data / "dcgm-a100-mig" / "Active_2_1g.5gb_+_2g.10gb.ini")
    assert rows(chunk, "mig_instance", "mig_profile", "board_power_watts", "board_energy_joules") == [
        ("5", "2g.10gb", 116.163, 57585.599),
        ("7", "1g.5gb", 116.043, 57585.599),
        ("9", "1g.5gb", 116.043, 57585.599),
    ]


def test_a_card_in_mig_mode_without_instances_is_one_sample(shared_data: Path) -> None:
    chunk = read(shared_data / "dcgm-a100-mig" / "Emtpy_MIG_enabled.ini")
    assert rows(chunk, "mig_instance", "gpu_util_ratio", "framebuffer_used_mib") == [("", None, None)]


def test_one_capture_pasted_twice_into_a_file_is_one_sample(shared_data: Path) -> None:
    chunk = read(shared_data / "dcgm-a100-mig" / "Empty_mig_disabled.ini")
    assert (chunk.events[GpuSampled].height, chunk.rows_read, chunk.rows_ignored) == (1, 46, 40)
    assert chunk.rejected.is_empty()
