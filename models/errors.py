"""Errors that a person sees, drawn as a tree.

GpuLedgerError
├── UsageError      the command or setting is wrong: exit code 2
├── SourceError     an outside system or file cannot be read at all
├── CheckError      a check fell short (coverage, conservation, proof): exit code 1
└── LogError        the event log is not what it says it is (tampering, version)

Outside data that is merely bad is never an exception: it becomes a row of ``events.rejected`` or a finding.
"""

from __future__ import annotations


class GpuLedgerError(Exception):
    """Base of all errors whose message is meant for a person: what, where, expected and found, what to do."""


class UsageError(GpuLedgerError):
    """The command, an argument or a setting is wrong."""


class SourceError(GpuLedgerError):
    """A source cannot be read at all: missing, truncated, not what it claims to be."""


class CheckError(GpuLedgerError):
    """A check fell short, and going on would publish a number that cannot be proved."""


class LogError(GpuLedgerError):
    """The event log does not hold what its digests say."""
