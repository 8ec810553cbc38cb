from __future__ import annotations

from models.policies import COST_POOLS, POLICIES, policy


def test_each_policy_is_known_once_and_its_default_is_allowed() -> None:
    assert len({known.name for known in POLICIES}) == len(POLICIES)
    for known in POLICIES:
        assert policy(known.name) is known
        assert not known.choices or known.default in known.choices
        assert known.choices or float(known.default) >= 0


def test_an_unknown_policy_is_none() -> None:
    assert policy("generosity") is None


def test_every_cost_pool_can_be_distributed() -> None:
    distribute = policy("distribute")
    assert distribute is not None
    assert distribute.subjects == COST_POOLS
