from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections import deque
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

from models.errors import SourceError, UsageError
from models.events import GpuSampled, polars_schema
from pipelines.sources import prometheus
from pipelines.sources.prometheus import read_prometheus
from tests.conftest import free_port, missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NINE = {"UUID": "GPU-9", "Hostname": "n1", "gpu": "0", "modelName": "NVIDIA H100 80GB HBM3", "instance": "e1:9400"}


def at(minutes: int) -> int:
    return int(MIDNIGHT.timestamp()) + 60 * minutes


class Recorded:
    """A Prometheus that plays recorded series, and first the statuses that a test wants."""

    def __init__(self) -> None:
        self.series: list[tuple[dict[str, str], list[tuple[int, str]]]] = []
        self.statuses: deque[int] = deque()
        self.asked: list[dict[str, str]] = []
        self.headers: list[str | None] = []
        self.url = ""

    def record(self, metric: str, points: list[tuple[int, str]], **labels: str) -> None:
        self.series.append((NINE | labels | {"__name__": metric}, points))

    def answer(self, query: dict[str, str]) -> dict[str, Any]:
        start, end, metric = int(query["start"]), int(query["end"]), query["query"].split()[0]
        found = [
            {"metric": labels, "values": within}
            for labels, points in self.series
            if labels["__name__"] == metric and (within := [point for point in points if start <= point[0] <= end])
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": found}}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    monkeypatch.setattr(prometheus, "_FIRST_WAIT_SECONDS", 0.01)
    played = Recorded()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            played.asked.append(query)
            played.headers.append(self.headers["Authorization"])
            status = played.statuses.popleft() if played.statuses else 200
            body = json.dumps(played.answer(query) if status == 200 else {"status": "error", "error": "not now"})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        played.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield played
        server.shutdown()
        thread.join()


def read(url: str, **options: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    chunks = list(read_prometheus(url, **{"cluster": "c1", "start": MIDNIGHT, "end": MIDNIGHT + HOUR} | options))
    return pl.concat([one.events[GpuSampled] for one in chunks]), pl.concat([one.rejected for one in chunks])


def test_metrics_of_one_gpu_and_instant_become_one_sample(recorded: Recorded) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(0), "50"), (at(1), "75")], namespace="ml", pod="train-0")
    recorded.record("DCGM_FI_DEV_POWER_USAGE", [(at(0), "300.5")], namespace="ml", pod="train-0")
    events, rejected = read(recorded.url)
    assert events.schema == polars_schema(GpuSampled)
    assert events.select("sampled_at", "gpu_util_ratio", "board_power_watts", "holder", "interval_seconds").rows() == [
        (MIDNIGHT, 0.5, 300.5, "ml/train-0", 60),
        (MIDNIGHT + timedelta(minutes=1), 0.75, None, "ml/train-0", 60),
    ]
    assert rejected.is_empty()


def test_each_sample_is_read_once_however_the_windows_are_cut(recorded: Recorded) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(minute), "50") for minute in range(-5, 70)])
    whole, _ = read(recorded.url)
    for window_seconds in (60, 7 * 60, 3_600, 86_400):
        cut, _ = read(recorded.url, window_seconds=window_seconds)
        assert cut.equals(whole)
    assert whole["sampled_at"].to_list() == [MIDNIGHT + timedelta(minutes=minute) for minute in range(60)]


def test_steps_lie_on_multiples_of_the_step_so_that_a_later_start_gives_the_same_samples(recorded: Recorded) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(minute), "50") for minute in range(60)])
    read(recorded.url, start=MIDNIGHT + timedelta(seconds=17))
    assert int(recorded.asked[0]["start"]) == at(1)


def test_a_value_older_than_the_step_is_not_asked_for(recorded: Recorded) -> None:
    read(recorded.url, step_seconds=30)
    query = "DCGM_FI_DEV_GPU_UTIL and timestamp(DCGM_FI_DEV_GPU_UTIL) > time() - 30"
    assert (recorded.asked[0]["query"], recorded.asked[0]["step"]) == (query, "30")


def test_no_query_asks_for_more_points_than_prometheus_gives(recorded: Recorded) -> None:
    read(recorded.url, step_seconds=1, end=MIDNIGHT + timedelta(days=1), window_seconds=86_400)
    assert max((int(one["end"]) - int(one["start"])) + 1 for one in recorded.asked) == 11_000


def test_a_window_without_samples_is_a_gap(recorded: Recorded) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(0), "50"), (at(59), "50")])
    chunks = list(
        read_prometheus(recorded.url, cluster="c1", start=MIDNIGHT, end=MIDNIGHT + HOUR, window_seconds=1_200)
    )
    assert [one.events[GpuSampled].height for one in chunks] == [1, 0, 1]


def test_progress_is_told_after_each_window(recorded: Recorded) -> None:
    told: list[float] = []
    read(recorded.url, window_seconds=900, on_progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


def test_headers_are_sent(recorded: Recorded) -> None:
    read(recorded.url, headers={"Authorization": "Bearer abc"})
    assert set(recorded.headers) == {"Bearer abc"}


def test_a_value_that_is_no_number_is_unknown_and_told_once_a_series(recorded: Recorded) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(0), "NaN"), (at(1), "NaN"), (at(2), "10")])
    recorded.record("DCGM_FI_DEV_POWER_USAGE", [(at(0), "70"), (at(1), "+Inf"), (at(2), "70")])
    events, rejected = read(recorded.url)
    assert events.select("gpu_util_ratio", "board_power_watts").rows() == [(None, 70.0), (0.1, 70.0)]
    assert rejected["reason"].to_list() == ["not a number (2 of this series)", "not a number (1 of this series)"]
    assert "DCGM_FI_DEV_GPU_UTIL" in rejected["position"][0]


def test_a_pod_that_takes_over_a_gpu_is_the_holder_from_then_on(recorded: Recorded) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(0), "50")], exported_namespace="a", exported_pod="x")
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(1), "60")], exported_namespace="b", exported_pod="y")
    events, rejected = read(recorded.url)
    assert events["holder"].to_list() == ["a/x", "b/y"]
    assert rejected.is_empty()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(recorded: Recorded, status: int) -> None:
    recorded.record("DCGM_FI_DEV_GPU_UTIL", [(at(0), "50")])
    recorded.statuses.extend([status, status])
    events, _ = read(recorded.url)
    assert events.height == 1


def test_a_server_that_stays_down_is_an_error_that_tells_the_query_and_the_answer(recorded: Recorded) -> None:
    recorded.statuses.extend([503] * 5)
    with pytest.raises(SourceError, match=r"DCGM_FI_DEV_GPU_UTIL.*503.*not now"):
        read(recorded.url)
    assert len(recorded.asked) == 5


def test_a_refused_query_is_not_tried_again(recorded: Recorded) -> None:
    recorded.statuses.append(401)
    with pytest.raises(SourceError, match=r"401.*Authorization"):
        read(recorded.url)
    assert len(recorded.asked) == 1


def test_nobody_listening_is_an_error_that_hides_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_FIRST_WAIT_SECONDS", 0.01)
    with pytest.raises(SourceError, match="Connection refused") as told:
        read(f"http://user:secret@127.0.0.1:{free_port()}")
    assert "secret" not in str(told.value)
    assert "Max retries" not in str(told.value)


@pytest.mark.parametrize("url", ["prometheus", "prometheus:9090", "ftp://prometheus", "http://"])
def test_an_address_that_is_none_is_refused_before_anything_is_asked(url: str) -> None:
    with pytest.raises(UsageError, match="expected the address of a server such as http://prometheus:9090"):
        read(url)


@pytest.mark.parametrize("options", [{"end": MIDNIGHT}, {"step_seconds": 0}, {"start": datetime(2026, 3, 1)}])  # noqa: DTZ001 - the point
def test_a_window_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected"):
        read("http://127.0.0.1:9", **options)


@pytest.fixture
def real_prometheus(tmp_path: Path) -> Iterator[str]:
    """A Prometheus of our own over backfilled data: 2 GPUs, 30 minutes each minute, minutes 10 to 19 without a scrape."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        missing("Prometheus", "apt-get install prometheus")
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for gpu in (0, 1):
        labels = f'UUID="GPU-{gpu}",Hostname="n1",gpu="{gpu}",modelName="NVIDIA H100 80GB HBM3",instance="e1:9400"'
        scraped = [minute for minute in range(30) if not 10 <= minute < 20]
        lines += [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {minute + gpu} {at(minute)}" for minute in scraped]
    (tmp_path / "backfill.txt").write_text("\n".join([*lines, "# EOF", ""]))
    (tmp_path / "prometheus.yml").write_text("scrape_configs: []\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "backfill.txt", "tsdb"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    address = f"127.0.0.1:{free_port()}"
    server = subprocess.Popen(
        ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", f"--web.listen-address={address}",
         "--storage.tsdb.retention.time=100y"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until_ready(f"http://{address}/-/ready")
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_until_ready(url: str) -> None:
    for _ in range(150):
        try:
            with urllib.request.urlopen(url):  # noqa: S310 - our own server
                return
        except URLError:  # HTTP 503 while it starts, too
            time.sleep(0.2)
    pytest.fail(f"{url} did not answer within 30 s")


@pytest.mark.component("prometheus")
def test_a_real_prometheus_gives_each_scrape_once_and_leaves_the_gap_a_gap(real_prometheus: str) -> None:
    events, rejected = read(real_prometheus, window_seconds=420)
    expected = [
        (f"GPU-{gpu}", MIDNIGHT + timedelta(minutes=minute), (minute + gpu) / 100)
        for gpu in (0, 1)
        for minute in range(30)
        if not 10 <= minute < 20
    ]
    assert sorted(events.select("gpu_uuid", "sampled_at", "gpu_util_ratio").rows()) == expected
    assert rejected.is_empty()
