"""What users of other systems suffered, each as a small test of the right behaviour, with numbers one can add up.

Each docstring names the issue (repository and number) in which people reported it.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from models.events import GpuSampled
from tests.ledgers import (
    CLUSTER,
    Book,
    Fact,
    asset,
    at,
    bill,
    gpus,
    line,
    node,
    owner,
    policy,
    rate,
    run,
    samples,
)

DAY = (at(1), at(2))


def held(
    name: str, account: str, start: datetime = DAY[0], end: datetime = DAY[1], *, count: int = 1, where: str = "n1"
) -> list[Fact]:
    """A run that holds A100s of a node."""
    return run(name, account, start, end, gpus(where, count, "A100"))


# Counting and pricing


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_parts_of_a_shared_gpu_add_up_to_its_price_whatever_their_number(replicas: int) -> None:
    """opencost #2657, #2862: with GPU replicas the parts of a node did not add up to its price of 1.35296 an hour."""
    part = gpus("n1", shares=4200 // replicas)
    runs = [fact for number in range(replicas) for fact in run(str(number), "A", at(1), at(1, 1), part)]
    hour = node("n1", effective_until_at=at(1, 1))
    book = Book(*hour, *runs, *bill(line("n1", "1.35296", at(1), at(1, 1))), *owner("A", "a"))
    assert book.charged() == {("a", "usage"): Decimal("1.35296")}


def test_a_node_with_eight_gpus_has_the_price_of_eight() -> None:
    """opencost #723: nodes with several GPUs were priced as one GPU."""
    book = Book(*node("n1", 8), *held("1", "A", count=8), *bill(line("n1", "576")), *owner("A", "a"))
    assert book.charged() == {("a", "usage"): 576}
    assert book.one("SELECT gpu_hours FROM marts.run_usage") == 8 * 24


def test_the_parts_of_a_node_that_are_not_gpus_are_kept() -> None:
    """opencost #73: on nodes with GPUs the cost of CPUs became 0."""
    lines = (
        line("n1", "70", service_name="GPU"),
        line("n1", "20", service_name="CPU"),
        line("n1", "10", service_name="Disk"),
    )
    assert Book(*node("n1"), *held("1", "A"), *bill(*lines), *owner("A", "a")).charged() == {("a", "usage"): 100}


def test_a_day_costs_no_more_than_its_part_of_the_month() -> None:
    """kubecost/cost-analyzer #3: a node showed more than 900 dollars a day, more than its month."""
    book = Book(*node("n1"), *held("1", "A"), *bill(line("n1", "300", at(1), at(31))), *owner("A", "a"))
    assert book.charged() == {("a", "usage"): 10, ("platform", "unallocated"): 290}


def test_no_gpus_no_idle_cost() -> None:
    """kubecost #1389: idle GPU cost was shown although there were no GPUs."""
    book = Book(*node("n1", 0), *held("1", "A", where="n2"), *node("n2"))
    assert book.buckets() == {"allocated_unmeasured": 24}
    assert book.charged() == {("A", "usage"): None}


def test_a_node_that_reports_too_few_gpus_is_a_finding_and_never_negative_idle() -> None:
    """kubecost #1978, opencost #3359, #3387, kubecost #1965: a wrong GPU count gave negative idle cost."""
    book = Book(*node("n1", 1), *held("1", "A", count=2), *bill(line("n1", "72")), *owner("A", "a"))
    assert book.buckets() == {"allocated_unmeasured": 48, "over_subscribed": -24}
    assert book.charged() == {("a", "usage"): 72}
    assert "over_subscribed" in book.findings()


def test_a_price_is_used_as_it_was_written() -> None:
    """opencost #2029, kubecost #2418: 730 a month, meant as 1 an hour, came out as 0.0492 an hour."""
    book = Book(
        *node("n1"), *held("1", "A", at(5), at(5, 1)), *bill(line("n1", "720", at(1), at(31))), *owner("A", "a")
    )
    assert book.charged()["a", "usage"] == 1


def test_a_currency_with_large_numbers_is_no_outlier() -> None:
    """opencost #1929: prices in KRW were refused as thirty times too high."""
    book = Book(*node("n1"), *held("1", "A"), *rate("KRW", "0.0007"), *owner("A", "a"))
    book.tell(*bill(line("n1", "1500000", currency="KRW")))
    assert book.charged() == {("a", "usage"): 1050}


def test_a_node_that_no_scheduler_uses_is_not_lost() -> None:
    """kubecost/docs #995 and Koku's case C: without a device plugin or a run the node's cost disappeared."""
    assert Book(*node("n1"), *bill(line("n1", "72"))).charged() == {("platform", "unallocated"): 72}


def test_each_node_has_its_own_price() -> None:
    """cortex #2405: in a group of spot and on-demand nodes all had one price."""
    nodes = node("n1", capacity_type="spot"), node("n2", capacity_type="on_demand")
    runs = *held("1", "A"), *held("2", "B", where="n2")
    book = Book(
        *nodes[0], *nodes[1], *runs, *bill(line("n1", "20"), line("n2", "70")), *owner("A", "a"), *owner("B", "b")
    )
    assert book.charged() == {("a", "usage"): 20, ("b", "usage"): 70}


# MIG, sharing and the exporter's labels


def test_four_quarters_of_a_gpu_are_one_gpu_hour() -> None:
    """opencost #3828, HAMi #3073: a quarter of the cores was charged as a whole GPU."""
    runs = [fact for name in "1234" for fact in run(name, name, at(1), at(1, 1), gpus("n1", shares=1050))]
    book = Book(*node("n1"), *runs, *bill(line("n1", "72")))
    assert book.ask("SELECT gpu_hours, cost FROM marts.run_usage") == [(Decimal("0.25"), Decimal("0.75"))] * 4
    assert sum(book.buckets().values()) == 24


def test_cutting_one_card_of_eight_leaves_eight_gpus() -> None:
    """k8s-device-plugin #738, #1501: gpu.count stayed 8 while one card was cut, and capacity was counted twice."""
    book = Book(*node("n1", 7), *node("n1", 1, mig={"1g.5gb": 7}), *bill(line("n1", "80")))
    assert book.buckets() == {"unallocated": 8 * 24}


def test_a_node_with_only_mig_slices_is_seen() -> None:
    """kubectl-view-allocations #258: nvidia.com/gpu is 0 on a node cut into slices, and it was not shown."""
    book = Book(
        *node("n1", mig={"3g.20gb": 2}), *run("1", "A", *DAY, gpus("n1", profile="3g.20gb")), *bill(line("n1", "72"))
    )
    assert book.charged() == {("A", "usage"): 36, ("platform", "unallocated"): 36}


def test_a_run_pays_though_the_exporter_does_not_name_it() -> None:
    """dcgm-exporter #577, #272, #342, #150: pod labels were missing, so cost was too."""
    busy = samples("GPU-1", at(1), range(60), holder=None)
    book = Book(*node("n1"), *held("1", "A", at(1), at(1, 1)), *busy, *bill(line("n1", "24")), *owner("A", "a"))
    assert book.charged() == {("a", "usage"): 1, ("platform", "unallocated"): 23}


def test_work_outside_the_scheduler_is_a_finding() -> None:
    """dcgm-exporter #577: busy GPUs without an owner must be seen, and must not be charged to anybody."""
    book = Book(
        *node("n1"), *samples("GPU-1", at(1), range(60)), *held("1", "A", at(1, 5), at(1, 6)), *bill(line("n1", "24"))
    )
    assert "activity_outside_allocation" in book.findings()
    assert book.charged() == {("A", "usage"): 1, ("platform", "unallocated"): 23}


def test_a_label_that_outlives_its_pod_charges_nothing() -> None:
    """dcgm-exporter #140: for up to half an hour after its end a pod was still named."""
    stale = samples("GPU-1", at(1), range(60), holder="A/pod")
    book = Book(*node("n1"), *held("pod", "A", at(1), at(1, 0, 30)), *stale, *bill(line("n1", "24")), *owner("A", "a"))
    assert book.charged()["a", "usage"] == Decimal("0.5")


def test_a_card_seen_by_two_exporters_is_one_card() -> None:
    """koku #5916, #5990, opencost #2901: a second exporter doubled the number of GPUs, or their price."""
    twice = samples("GPU-1", at(1), range(60), holder="A/pod") + samples("GPU-1", at(1), range(60), holder="A/pod")
    shifted = [(GpuSampled, fact | {"sampled_at": fact["sampled_at"] + timedelta(seconds=30)}) for _, fact in twice]
    assert Book(*twice, *shifted).buckets() == {"active": 1}


def test_a_model_nobody_knows_is_shown_and_flagged() -> None:
    """koku #6120: GPUs of a model without a price were dropped."""
    book = Book(*run("1", "A", *DAY, gpus("n9", 1, "T9000")))
    assert book.ask("SELECT gpu_model, gpu_hours, cost FROM marts.run_usage") == [("T9000", 24, None)]
    assert "usage_without_price" in book.findings()


# Spot, commitments and credits


def test_a_missing_price_is_unknown_and_no_default() -> None:
    """opencost #882: without a spot price a default was used."""
    book = Book(*node("n1", capacity_type="spot"), *held("1", "A"))
    assert book.ask("SELECT cost, cost_micros FROM marts.chargeback_monthly") == [(None, None)]


def test_the_invoice_and_the_amortised_cost_stand_side_by_side() -> None:
    """opencost #3839, #3032, #1018, kubecost #2004: prepaid hours counted 0, or the list price, two to five times the invoice."""
    bought = line(
        None, "459024", charge_category="Purchase", effective_amount=Decimal(0), commitment_discount_id="sp-1"
    )
    used = [
        line(
            "n1",
            "0",
            at(1, h),
            at(1, h + 1),
            effective_amount=Decimal("52.40"),
            list_amount=Decimal("78.60"),
            commitment_discount_status="Used",
        )
        for h in range(18)
    ]
    unused = [
        line(
            None,
            "0",
            at(1, h),
            at(2) if h == 23 else at(1, h + 1),
            effective_amount=Decimal("52.40"),
            commitment_discount_status="Unused",
        )
        for h in range(18, 24)
    ]
    there = node("n1", effective_until_at=at(1, 18))
    book = Book(*there, *held("1", "A", at(1), at(1, 18)), *bill(bought, *used, *unused), *owner("A", "a"))
    assert book.charged() == {("a", "usage"): Decimal("943.20"), ("platform", "unused_commitment"): Decimal("314.40")}
    assert book.ask("SELECT billed, invoiced FROM marts.proof_monthly") == [(Decimal("1257.60"), 459024)]
    assert "unused_commitment" in book.findings()


def test_usage_covered_by_a_commitment_is_counted_once() -> None:
    """opencost #2296, koku #5247: the covered row and the fee both counted."""
    covered = line("n1", "50", effective_amount=Decimal(30), commitment_discount_status="Used")
    negation = line("n1", "-50", effective_amount=Decimal(0), charge_category="Usage", charge_description="Negation")
    assert Book(*node("n1"), *held("1", "A"), *bill(covered, negation)).charged() == {("A", "usage"): 30}


def test_refunds_count() -> None:
    """Teevity/ice #138, kubecost #1818, opencost #672: refunds of 0.844161 and 196.838912 were ignored."""
    refunds = [line("n1", amount, charge_category="Credit") for amount in ("-0.844161", "-196.838912")]
    book = Book(*node("n1"), *held("1", "A"), *bill(line("n1", "300"), *refunds), *owner("A", "a"))
    assert book.charged() == {("a", "usage"): 300 - Decimal("197.683073")}


# Conservation


def test_the_total_is_the_sum_of_what_is_shown() -> None:
    """kubecost #1521, opencost #1266: totals differed from their parts by adjustments, or had them with the wrong sign."""
    lines = (
        line("n1", "100"),
        line("n1", "-7.50", charge_category="Adjustment"),
        line(None, "3.33", charge_category="Tax"),
    )
    book = Book(*node("n1", 2), *held("1", "A"), *bill(*lines), *owner("A", "a"))
    assert book.charged() == {
        ("a", "usage"): Decimal("46.25"),
        ("platform", "unallocated"): Decimal("46.25"),
        ("platform", "unmatched"): Decimal("3.33"),
    }
    assert book.one("SELECT billed FROM marts.proof_monthly") == Decimal("95.83")


def test_what_is_used_is_measured_and_not_what_is_held() -> None:
    """opencost #3900: usage was within one per cent of allocation, since it was derived from it."""
    book = Book(
        *node("n1"),
        *held("1", "A", at(1), at(1, 1)),
        *samples("GPU-1", at(1), range(15)),
        *samples("GPU-1", at(1), range(15, 60), busy=0.0),
    )
    assert book.buckets() == {"active": Decimal("0.25"), "allocated_idle": Decimal("0.75"), "unallocated": 23}


def test_each_month_has_its_own_rate() -> None:
    """koku #5839: what nobody used was inflated by the rate of another month."""
    bills = [
        *bill(line("n1", "100", currency="EUR")),
        *bill(line("n1", "100", at(1, month=10), at(2, month=10), currency="EUR"), month=date(2026, 10, 1)),
    ]
    book = Book(*node("n1"), *bills, *rate("EUR", "1.10"), *rate("EUR", "1.20", at(1, month=10)))
    assert book.ask("SELECT charge_month, cost FROM marts.chargeback_monthly") == [
        (date(2026, 10, 1), 120),
        (date(2026, 9, 1), 110),
    ]


# Time


def test_a_day_has_24_hours() -> None:
    """opencost #3164: a day was 23.91667 hours and 0.300242 instead of 0.3264."""
    book = Book(*node("n1"), *held("1", "A"), *bill(line("n1", "0.3264")))
    assert book.ask("SELECT gpu_hours, cost FROM marts.run_usage") == [(24, Decimal("0.3264"))]


def test_a_run_shorter_than_a_scrape_is_billed() -> None:
    """kubefin #47: pods that lived less than the scrape interval of 15 seconds cost nothing."""
    book = Book(*node("n1"), *held("1", "A", at(1, 0, 0, 3), at(1, 0, 0, 12)), *bill(line("n1", "8640")))
    assert book.charged()["A", "usage"] == Decimal("0.90")


def test_samples_after_the_end_do_not_lengthen_a_run_and_a_second_reader_does_not_double_it() -> None:
    """opencost #2134, #1465, kubecost #358: zero values extended pods, and a second metrics server doubled them."""
    again = held("1", "A", at(1), at(1, 1))
    book = Book(*node("n1"), *again, *samples("GPU-1", at(1, 1), range(60), busy=0.0)).tell(*again)
    assert book.ask("SELECT gpu_hours FROM marts.run_usage") == [(1,)]


def test_energy_survives_a_reset_of_the_counter() -> None:
    """IBM/CAST #399, metrics-server #745, susql-operator #3: a reset gave 9.22e18 joules, or less than none."""
    counter = [1e9, 1e9 + 6000, 0.0, 6000.0]
    facts = [
        fact
        for minute, joules in enumerate(counter)
        for fact in samples("GPU-1", at(1), [minute], board_power_watts=100.0, board_energy_joules=joules)
    ]
    assert Book(*facts).ask("SELECT seen_seconds, energy_joules FROM marts.energy_daily") == [(240, 24_000.0)]


def test_the_power_of_a_board_counts_once_for_all_its_slices() -> None:
    """dcgm-exporter repeats the board's power on every MIG instance; seven instances are not seven boards."""
    facts = [
        fact
        for instance in "1234567"
        for fact in samples("GPU-1", at(1), range(60), mig_instance=instance, board_power_watts=100.0)
    ]
    assert Book(*facts).one("SELECT sum(energy_joules) FROM marts.energy_daily") == 360_000.0


def test_a_day_of_25_local_hours_is_neither_shifted_nor_counted_twice() -> None:
    """kubecost #816, #518, litellm #29568, xdmod #1779: offsets shifted days, or counted them twice."""
    zurich_midnights = at(24, 22, month=10), at(25, 23, month=10)
    book = Book(*held("1", "A", *zurich_midnights))
    assert book.ask("SELECT use_day, gpu_hours FROM marts.usage_daily") == [
        (date(2026, 10, 24), 2),
        (date(2026, 10, 25), 23),
    ]


# Bills that come again


def test_a_bill_delivered_again_changes_nothing() -> None:
    """koku #6168, #6145, #2962, #1180, #5707, #5795, finops-toolkit #1896: a rerun doubled the month, up to ten times."""
    delivery = bill(line("n1", "72"))
    book = Book(*node("n1"), *delivery).tell(*delivery).tell(*delivery)
    assert book.charged() == {("platform", "unallocated"): 72}


def test_a_rate_that_comes_late_prices_what_was_unknown() -> None:
    """finops-toolkit #1326: a month read before its prices stayed wrong."""
    book = Book(*node("n1"), *bill(line("n1", "100", currency="EUR")))
    assert book.one("SELECT cost FROM marts.chargeback_monthly") is None
    assert book.tell(*rate("EUR", "1.10")).charged() == {("platform", "unallocated"): 110}


def test_an_account_is_paid_for_by_whom_it_belonged_to_then() -> None:
    """opencost #1412, kubecost #2222, #2101: a rename rewrote the past."""
    book = Book(*node("n1"), *held("1", "A", at(1), at(3)), *bill(line("n1", "20", at(1), at(3))))
    book.tell(*owner("A", "vision"), *owner("A", "robotics", start=at(2)))
    assert book.charged() == {("vision", "usage"): 10, ("robotics", "usage"): 10}


def test_a_requeued_job_has_two_attempts_and_a_repeated_one_has_one() -> None:
    """xdmod "Fix raw data job query duplicates", Slurm -D: a requeue was lost, or a repeat counted twice."""
    first = held("1", "A", at(1), at(1, 1))
    book = Book(*first, *held("1", "A", at(1, 2), at(1, 3))).tell(*first)
    assert book.ask("SELECT started_at, gpu_hours FROM marts.run_usage") == [(at(1), 1), (at(1, 2), 1)]


# Money, currencies, standards


def test_no_penny_is_lost() -> None:
    """RubyMoney #1033, spliit #374, Clinical-Genomics/cg #1220: 700273 became 700272, a dollar in three 0.99."""
    for amount, count, expected in (("0.700273", 2, [350137, 350136]), ("1", 3, [333334, 333333, 333333])):
        runs = [fact for number in range(count) for fact in held(str(number), "A")]
        book = Book(*node("n1", count), *runs, *bill(line("n1", amount)))
        assert [row[1] for row in book.ask("SELECT run_id, cost_micros FROM core.cost_daily")] == expected


def test_three_currencies_in_one_ledger() -> None:
    """optscale #689, koku #5223: one currency an organisation, and CHF added to EUR."""
    lines = line("n1", "10"), line("n2", "10", currency="EUR"), line("n3", "10", currency="CHF")
    bills = [fact for number, one in enumerate(lines) for fact in bill(one, billing_account_id=str(number))]
    nodes = [fact for name in ("n1", "n2", "n3") for fact in node(name)]
    book = Book(*nodes, *bills, *rate("EUR", "1.10"), *rate("CHF", "1.05"))
    assert book.charged() == {("platform", "unallocated"): Decimal("31.50")}


def test_list_and_contracted_prices_are_not_added_to_the_cost() -> None:
    """FOCUS_Spec #974, #647: list 1,095, contracted 1,022 and billed 365 were summed."""
    one = line("n1", "365", list_amount=Decimal(1095), contracted_amount=Decimal(1022))
    book = Book(*node("n1"), *held("1", "A"), *bill(one))
    assert book.charged() == {("A", "usage"): 365}
    assert book.one("SELECT sum(list_micros) FROM core.cost_daily") == 1_095_000_000


def test_the_parts_of_a_day_add_up_to_one_day() -> None:
    """FOCUS_Spec #2712, #2708: hourly ratios published for a day summed to 24."""
    book = Book(*node("n1", 2), *held("1", "A"), *held("2", "B", at(1), at(1, 6)), *bill(line("n1", "96")))
    assert book.charged() == {("A", "usage"): 48, ("B", "usage"): 12, ("platform", "unallocated"): 36}


def test_owned_and_rented_nodes_stand_on_one_page() -> None:
    """FOCUS_Spec #1105, #965, #2011: there is no guidance for owned hardware."""
    month = at(1), at(31)
    book = Book(
        *node("n1"),
        *node("n2"),
        *asset("n2", "1200", 12),
        *bill(line("n1", "720", *month)),
        *held("1", "A", *month),
        *held("2", "A", *month, where="n2"),
    )
    assert book.ask("SELECT bill, effective FROM marts.proof_by_bill") == [
        ("AWS/1/2026-09", 720),
        (f"owned/{CLUSTER}/2026-09", 100),
    ]
    assert book.charged() == {("A", "usage"): 820}


# Koku's own examples


def test_kokus_document_adds_up() -> None:
    """Koku's document of MIG prices prints 1.72 and 7.72 where 1.71 and 7.71 are right, and 72.00 in all."""
    runs = [("train", 4, 2), ("inference", 1, 6), ("serving", 2, 2)]
    facts = [
        fact
        for name, count, hours in runs
        for fact in run(name, name, at(1), at(1, hours), gpus("n1", count, profile="1g.5gb"))
    ]
    book = Book(*node("n1", mig={"1g.5gb": 7}), *facts, *bill(line("n1", "72")))
    found = book.charged()
    assert [round(found[name, "usage"], 2) for name, _, _ in runs] == [
        Decimal("3.43"),
        Decimal("2.57"),
        Decimal("1.71"),
    ]
    assert found["platform", "unallocated"] == Decimal("64.285714")
    assert sum(found.values()) == 72


def test_an_account_on_two_models_pays_for_both() -> None:
    """Koku's case B: half of 100 and all of 40 came out as the larger, 50."""
    runs = *held("1", "A", at(1), at(1, 12)), *run("2", "A", *DAY, gpus("n2", 1, "V100"))
    book = Book(
        *node("n1"), *node("n2", model="V100"), *runs, *bill(line("n1", "100"), line("n2", "40")), *owner("A", "a")
    )
    assert book.charged() == {("a", "usage"): 90, ("platform", "unallocated"): 50}


def test_what_nobody_used_is_shared_by_what_was_used() -> None:
    """Koku's case A': one whole GPU and three sevenths were weighed 1 to 3 instead of 7 to 3."""
    facts = *node("n1"), *node("n1", mig={"1g.5gb": 7}), *owner("A", "a"), *owner("B", "b")
    runs = *held("1", "A"), *run("2", "B", *DAY, gpus("n1", 3, profile="1g.5gb"))
    found = Book(
        *facts, *runs, *bill(line("n1", "144")), *policy("distribute", "unallocated", "proportional")
    ).charged()
    assert (found["a", "unallocated"], found["b", "unallocated"]) == (Decimal("28.80"), Decimal("12.342857"))
    assert sum(found.values()) == 144
