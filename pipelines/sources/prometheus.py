"""GPU telemetry from a running Prometheus (or Thanos, Mimir, VictoriaMetrics), window by window.

Each step is asked for its newest scrape, and only if that scrape is younger than the step. Without this bound
Prometheus repeats a value for five minutes, and a scrape gap would look like measured time. The steps lie on multiples
of the step since 1970, so a window read again, or cut otherwise, gives the same samples.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from models.errors import SourceError, UsageError
from pipelines.sources.dcgm import METRICS, answer_series, epoch_seconds, samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.sources.base import Chunk

SOURCE = "prometheus"

_MOST_STEPS = 11_000  # a query_range with more points a series is refused by Prometheus
_ATTEMPTS = 5
_FIRST_WAIT_SECONDS = 1.0  # then doubled each time
_TIMEOUT_SECONDS = 150  # a little more than Prometheus gives a query by default
_STATUS = re.compile(r"HTTP Status Code (\d{3})")


def read_prometheus(  # noqa: PLR0913 - each is one thing that the command's user chooses
    url: str,
    *,
    cluster: str,
    start: datetime,
    end: datetime,
    step_seconds: int = 60,
    window_seconds: int = 6 * 3_600,
    on_progress: Callable[[float], None] | None = None,
    headers: dict[str, str] | None = None,
) -> Iterator[Chunk]:
    """Read the samples of ``[start, end)``, one chunk a window; a window without samples is a gap, not an error.

    Args:
      url: Address of the API's root, such as ``http://prometheus:9090``.
      cluster: Cluster whose GPUs this Prometheus scrapes.
      start: First instant, inclusive.
      end: Last instant, exclusive.
      step_seconds: Seconds that each sample stands for: the scrape interval or a multiple of it.
      window_seconds: Seconds asked for at once; bounds the memory.
      on_progress: Called after each window with the part done, 0 to 1.
      headers: HTTP headers, such as Authorization.

    Raises:
      SourceError: It does not answer after five tries, or refuses the query.
      UsageError: The address is none, or the window is no window, or has no zone.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"expected the address of a server such as http://prometheus:9090, found {_address(url)!r}")
    first, last = epoch_seconds(start), epoch_seconds(end)
    if first >= last or step_seconds < 1:
        raise UsageError(
            f"expected start < end and a step of 1 s or more, found {start} to {end}, step {step_seconds} s"
        )
    # Imported here: it brings an HTTP stack that no other command needs.
    from prometheus_api_client import PrometheusConnect  # noqa: PLC0415

    client = PrometheusConnect(url=url.rstrip("/"), headers=headers, retry=0, timeout=_TIMEOUT_SECONDS)
    steps = range(-(-first // step_seconds) * step_seconds, last, step_seconds)
    per_window = min(max(window_seconds // step_seconds, 1), _MOST_STEPS)
    with client:
        for done in range(0, len(steps), per_window):
            window = steps[done : done + per_window]
            rows = [one for metric in METRICS for one in _series(client, metric, window)]
            yield samples(rows, source=SOURCE, cluster=cluster, interval_seconds=step_seconds)
            if on_progress is not None:
                on_progress((done + len(window)) / len(steps))


def _series(client: Any, metric: str, steps: range) -> list[dict[str, Any]]:
    """Series of one metric at some steps."""
    query = f"{metric} and timestamp({metric}) > time() - {steps.step}"
    # Both ends of a query_range are inclusive: the last step stands before the window's end.
    start, end = (datetime.fromtimestamp(at, UTC) for at in (steps[0], steps[-1]))
    attempts = Retrying(
        retry=retry_if_exception(_is_passing),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(multiplier=_FIRST_WAIT_SECONDS, max=60),
        reraise=True,
    )
    where = f"{_address(client.url)} {metric}"
    try:
        result = attempts(client.custom_query_range, query, start, end, str(steps.step))
    except Exception as error:  # the library lets through those of requests, of JSON and its own
        raise SourceError(
            f"{where}: no answer to query_range {query!r} from {start.isoformat()} to {end.isoformat()}: {_said(error)}; "
            "check the address, the Authorization header and that the server is up"
        ) from error
    return answer_series(result, where)


def _said(error: BaseException) -> str:
    """What went wrong, without the query around it: urllib3 keeps the broken connection's own words in ``reason``."""
    cause = error.args[0] if error.args else error
    return str(getattr(cause, "reason", None) or error)[:500]


def _is_passing(error: BaseException) -> bool:
    """Whether another try may help: no connection, a broken one, 429 or 5xx.

    What requests raises is an OSError; when it is a ValueError too (a bad address, an answer that is no JSON), it stays.
    """
    status = _STATUS.match(str(error))
    if status:
        return status[1] == "429" or status[1].startswith("5")
    return isinstance(error, OSError) and not isinstance(error, ValueError)


def _address(url: str) -> str:
    """The URL without user and password, for messages."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
