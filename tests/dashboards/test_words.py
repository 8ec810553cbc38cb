from __future__ import annotations

import re

from dashboards import words
from models.findings import FINDING_KINDS
from models.policies import COST_POOLS
from pipelines.projections import load


def test_every_bucket_kind_of_cost_and_severity_has_its_words() -> None:
    [laid] = [one.select for one in load() if one.name == "core.bucket_hourly"]
    [buckets] = re.findall(r"for bucket in \(([a-z_,\s]+)\)", laid)
    assert set(words.BUCKETS) == set(re.split(r",\s*", buckets.strip()))
    assert set(words.COST_KINDS) == {"usage", *COST_POOLS}
    assert set(words.SEVERITIES) == {kind.severity for kind in FINDING_KINDS}


def test_a_kind_of_cost_without_words_still_reads_well() -> None:
    assert words.kind("late_fee") == "Late fee"
