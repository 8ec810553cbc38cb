"""Every dated policy once: its name, the values it takes, its default and what it decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Attributes:
      name: As written in a policy file.
      default: Value in force before any is set.
      doc: What it decides, in one sentence.
      choices: Allowed values; empty where the value is a number.
      subjects: What the subject column may hold; empty where there is none.
      subject_kinds: The subject is one of these kinds and a name, such as partition:gpu; empty where it is not.
      is_for_all: The subject may also be empty: then the value counts where none is set for a kind and a name.
      more_choices: Further (subject, value) pairs: values that are allowed for one subject only.
    """

    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    subject_kinds: tuple[str, ...] = ()
    is_for_all: bool = False
    more_choices: tuple[tuple[str, str], ...] = ()

    def allowed(self, subject: str) -> tuple[str, ...]:
        """Values allowed for a subject; empty where the value is a number.

        >>> policy("distribute").allowed("lost_work")[-1], policy("distribute").allowed("down")[-1]
        ('owner', 'fixed')
        """
        return (*self.choices, *(value for one, value in self.more_choices if one == subject))


COST_POOLS = ("unallocated", "down", "stranded", "lost_work", "unused_commitment", "shared", "unmatched")
"""Costs that are no usage, in the order they are shown.

``lost_work``: what runs held after their last checkpoint, when they were interrupted, and until they worked again.
``shared``: a cluster's own cost (network, storage, support). ``unmatched``: a bill line that no node matches.
"""

WORKLOAD_CLASSES = ("inference", "rigid", "deferrable", "dev")
"""Classes of work: serving; training that cannot be interrupted; checkpointed training that can; interactive work."""

UNCLASSIFIED = "unclassified"
"""Work of which no policy says what it is; a plan treats it as rigid."""

POLICIES: tuple[Policy, ...] = (
    Policy(
        "distribute",
        "platform",
        "Who pays a cost pool: the platform, teams in proportion to their GPU time that day, all owners evenly, "
        "or teams by the fixed weights of policy fixed_weight. Lost work may also stay with the owner of the run.",
        ("platform", "proportional", "even", "fixed"),
        COST_POOLS,
        more_choices=(("lost_work", "owner"),),
    ),
    Policy(
        "fixed_weight", "0", "A team's integer weight where a pool is distributed as fixed; the subject is the team."
    ),
    Policy("mig_weight", "max", "Basis of a MIG slice's weight.", ("max", "compute")),
    Policy(
        "close_min_priced_ratio", "0.95", "Least part of allocated GPU time with a known cost before a month may close."
    ),
    Policy(
        "close_min_measured_ratio",
        "0.80",
        "Least part of allocated GPU time with telemetry before a month may close, on clusters that have any.",
    ),
    Policy(
        "workload_class",
        UNCLASSIFIED,
        "What kind of work a run is, for planning: serving, training that cannot be interrupted, training that can, or "
        "interactive work. The policy of its QOS wins over that of its partition, and that over its account's.",
        (*WORKLOAD_CLASSES, UNCLASSIFIED),
        subject_kinds=("qos", "partition", "account"),
    ),
    Policy(
        "restart_seconds",
        "0",
        "How long a run takes from the start of an attempt until it works again, where the attempt before was "
        "interrupted: restart work, paid like lost work. The policy of its partition wins over that of its account, and "
        "that over the one for all, which has no subject. 0: nothing is known, nothing moves.",
        subject_kinds=("partition", "account"),
        is_for_all=True,
    ),
    Policy(
        "price_max_age_days",
        "45",
        "Days after which a price that a plan or commitment uses, or any on-demand price, is pointed out as old.",
    ),
)


def policy(name: str) -> Policy | None:
    """The policy of that name, or None."""
    return next((known for known in POLICIES if known.name == name), None)
