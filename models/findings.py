"""Every kind of finding once: how severe it is, what was expected, and what a person should do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of finding.

    Attributes:
      kind: As in ``marts.findings``.
      severity: error (a close is refused), warning (money or hours stand in the wrong place until someone acts) or info.
      unit: Unit of the amount found.
      expected: What would have been right.
      explanation: Why it matters and what to do, in one or two sentences.
    """

    kind: str
    severity: str
    unit: str
    expected: str
    explanation: str


FINDING_KINDS: tuple[FindingKind, ...] = (
    FindingKind(
        "account_without_owner",
        "warning",
        "GPU-hours",
        "a team and business unit for the account",
        "Its cost stands under Unassigned with the account's own name as team. Add the account to the organisation file.",
    ),
    FindingKind(
        "usage_without_price",
        "warning",
        "GPU-hours",
        "a bill line or an asset for the node",
        "GPU time was used on a node whose cost is unknown; its cost is left empty, not zero. Ingest the bill or the asset, "
        "or name the node's resource_id in the nodes file.",
    ),
    FindingKind(
        "over_subscribed",
        "warning",
        "GPU-hours",
        "no more allocated than the node has",
        "The scheduler allocated more GPUs than the inventory says exist. Correct the nodes file, or the run's records.",
    ),
    FindingKind(
        "telemetry_gap",
        "info",
        "GPU-hours",
        "telemetry for every allocated hour",
        "Allocated time without samples: coverage is lower, the bill is not. Look at the exporter of this node.",
    ),
    FindingKind(
        "capacity_from_telemetry",
        "info",
        "GPU-hours",
        "the node in the nodes file",
        "Nobody declared this node's GPUs; only the minutes in which telemetry saw them count as capacity.",
    ),
    FindingKind(
        "activity_outside_allocation",
        "warning",
        "GPU-hours",
        "activity only where a run holds GPUs",
        "GPUs were busy in hours in which the scheduler had nothing on the node: work outside the scheduler, or missing records.",
    ),
    FindingKind(
        "charge_without_node",
        "warning",
        "money",
        "a node with this resource id",
        "Billed, but no node is known by this resource: it stays in the unmatched pool. Add the resource_id to the nodes file, "
        "or leave it if it is not GPU cost.",
    ),
    FindingKind(
        "unused_commitment",
        "info",
        "money",
        "every committed hour used",
        "Committed and paid for, but not used: its own pool, paid by whom the policy says.",
    ),
    FindingKind(
        "missing_exchange_rate",
        "error",
        "money in the bill's currency",
        "a rate for the month",
        "The bill's currency has no exchange rate for its month, so its cost is unknown. Ingest an fx file.",
    ),
    FindingKind(
        "negative_usage",
        "warning",
        "quantity",
        "a positive quantity, or ChargeClass Correction",
        "A usage line with a negative quantity that is not marked as a correction: its money is kept; ask the issuer.",
    ),
    FindingKind(
        "run_without_end",
        "warning",
        "runs",
        "an end for a finished run",
        "The scheduler says the run is over but not when; it counts until the last day known. Fix it with sacctmgr show runawayjobs.",
    ),
    FindingKind(
        "run_known_by_steps",
        "warning",
        "runs",
        "the job's own row",
        "Only steps of these jobs came, so their time is that of the steps, and user and QOS are unknown. Ingest the jobs: "
        "sacct -X writes their rows alone.",
    ),
    FindingKind(
        "mig_card_unknown",
        "warning",
        "runs",
        "the card's model in the nodes file",
        "A MIG slice on a card of unknown model weighs the sevenths in its profile's name. Add the node to the nodes file.",
    ),
    FindingKind(
        "rows_rejected",
        "warning",
        "rows",
        "rows that can be understood",
        "Rows of a source were kept aside with the reason; see gpuledger findings --rejected. Nothing of them is counted.",
    ),
    FindingKind(
        "rows_set_aside",
        "info",
        "rows",
        "nothing",
        "Rows that are understood and rightly not billed, such as jobs that never started.",
    ),
    FindingKind(
        "closed_month_changed",
        "info",
        "money",
        "no change after the close",
        "Facts that came after the close change this month; the difference will be posted as a correction when the next month closes.",
    ),
    FindingKind(
        "workload_unclassified",
        "info",
        "GPU-hours",
        "a class of work for every run that is planned for",
        "No policy says what kind of work this is; a plan treats it as training that cannot be interrupted. Set policy workload_class "
        "for its QOS, partition or account.",
    ),
    FindingKind(
        "price_stale",
        "warning",
        "days",
        "a price read within the days that policy price_max_age_days says",
        "What is bought or planned is compared with an old price, and GPU prices move both ways. Ingest a newer price file, "
        "or ask the provider again.",
    ),
    FindingKind(
        "price_without_rate",
        "warning",
        "prices and commitments",
        "a rate for the month in which the price was read or the commitment starts",
        "Their currency has no exchange rate for that month, so no plan can use them. Ingest an fx file.",
    ),
    FindingKind(
        "commitment_overlap",
        "info",
        "commitments",
        "one purchase",
        "Several active commitments of one offer begin and end together: they may be one purchase recorded twice, or bought twice.",
    ),
    FindingKind(
        "lost_work_unknown",
        "info",
        "GPU-hours",
        "checkpoints of a run that was interrupted",
        "These attempts were interrupted and their runs tell of no checkpoint, so how much of this time was lost is unknown: all of it "
        "stays with the run's owner. Ingest the checkpoints that the runs save.",
    ),
)
