"""When an owned node has paid for itself, against each offer to rent the same GPUs and at each utilisation.

Utilisation is always delivered GPU-hours over all GPU-hours of the node: neither hours powered nor hours allocated. All
money is of one node, in the inputs' currency. Sums are discounted at the end of each month. Sources of the formulae:
capital recovery and sinking fund of engineering economics. Does not belong here: ranges of inputs, see
``break_even_risk``; reading files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from models import cash_flow
from models.break_even_inputs import UNCERTAIN, UpfrontOffer
from models.cash_flow import MONTHS_PER_YEAR
from models.prices import HOURS_PER_MONTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from models.break_even_inputs import Comparator, Inputs

    Values = NDArray[np.float64]

HOURS_PER_YEAR = 8_760
WATTS_PER_KILOWATT = 1_000


def node_watts(board_watts: float, gpus_per_node: int, host_watts: float) -> float:
    """Mean power of a node from that of one GPU board, as exporters measure it, and of all the rest of the node.

    >>> node_watts(500, 8, 1_900)
    5900
    """
    return board_watts * gpus_per_node + host_watts


def power_cost_per_node_month(watts: Any, power_usage_effectiveness: Any, price_per_kilowatt_hour: Any) -> Any:
    """Energy of a node for a month of 730 hours, from its mean watts; numbers or arrays.

    >>> round(power_cost_per_node_month(8_160, 1.3, 0.08), 2)
    619.51
    """
    return watts / WATTS_PER_KILOWATT * power_usage_effectiveness * price_per_kilowatt_hour * HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class Cases:
    """Many cases at once: one value a case in each column.

    Attributes:
      inputs: What is the same for all.
      columns: Name of an uncertain input → its values; and ``price``, ``is_committed``.
    """

    inputs: Inputs
    columns: Mapping[str, Values]

    @classmethod
    def of(cls, inputs: Inputs, comparators: Sequence[Comparator], drawn: Mapping[str, Values]) -> Cases:
        """One case for each comparator, or for each value in ``drawn`` where it is one comparator."""
        count = max([len(comparators), *map(len, drawn.values())])
        stated: dict[str, Any] = {name: getattr(inputs, name) for name in UNCERTAIN}
        stated["measured_node_watts"] = inputs.measured_node_watts or math.nan  # unknown; the assumption is taken
        stated["price"] = [one.price_per_gpu_hour for one in comparators]
        stated["is_committed"] = [one.is_committed for one in comparators]
        columns = {**stated, **drawn}
        return cls(
            inputs, {name: np.broadcast_to(np.asarray(column, float), count) for name, column in columns.items()}
        )

    def __getitem__(self, name: str) -> Values:
        """One column."""
        return self.columns[name]

    @property
    def outlay(self) -> Values:
        """What a node and its network cost."""
        return self["purchase_per_node"] * (1 + self["network_ratio"])

    @property
    def colo_per_month(self) -> Values:
        """Reserved power and space."""
        return self["nameplate_kilowatts"] * self["colo_per_kilowatt_month"]

    @property
    def support_per_month(self) -> Values:
        """The manufacturer's support."""
        return self["support_ratio"] * self["purchase_per_node"] / MONTHS_PER_YEAR

    @property
    def energy_per_month(self) -> Values:
        """Energy, from measured watts where there are any, else from the assumed load."""
        assumed = self["nameplate_kilowatts"] * WATTS_PER_KILOWATT * self["load_ratio"]
        measured = self["measured_node_watts"]
        watts = np.where(np.isnan(measured), assumed, measured)
        cost: Values = power_cost_per_node_month(
            watts, self["power_usage_effectiveness"], self["price_per_kilowatt_hour"]
        )
        return cost

    @property
    def running_per_month(self) -> Values:
        """What a node costs a month once it runs."""
        return (
            self.colo_per_month
            + self.energy_per_month
            + self.support_per_month
            + self["staff_per_node_month"]
            + self["fees_per_node_month"]
        )

    @property
    def rented_per_gpu_hour(self) -> Values:
        """Rent of a delivered GPU-hour: a commitment's unused hours are paid too."""
        used = np.where(self["is_committed"] > 0, self["expected_utilisation"], 1)
        return self["price"] * self["rented_price_ratio"] / used

    @property
    def rent_per_month(self) -> Values:
        """Rent of the GPU-hours that a node delivers in a month."""
        gpu_hours = self.inputs.gpus_per_node * HOURS_PER_MONTH * self["expected_utilisation"]
        return self.rented_per_gpu_hour * gpu_hours

    @property
    def start(self) -> Values:
        """Months until the node runs."""
        return np.rint(self["lead_months"])

    @property
    def end(self) -> Values:
        """Months until the node's life ends."""
        return self.start + np.rint(self["life_years"] * MONTHS_PER_YEAR)

    @property
    def residual(self) -> Values:
        """What the sale at the end of life is worth now."""
        monthly = cash_flow.monthly_ratio(self["discount_ratio"])
        return np.asarray(
            self["residual_ratio"] * self["purchase_per_node"] * cash_flow.present_value(monthly, self.end)
        )

    def payback_months(
        self, *, is_discounted: bool = True, with_residual: bool = False, with_price_cut: bool = False
    ) -> Values:
        """First month, from the purchase, by whose end the savings cover the outlay; NaN where none does.

        With the residual, the outlay is less by the present value of the sale at the end of life. A payback later than
        that end is one only for who keeps the node running.
        """
        monthly = cash_flow.monthly_ratio(self["discount_ratio"] if is_discounted else 0.0)
        wanted = self.outlay - (self.residual if with_residual else 0)
        enough = wanted * (1 - 1e-12)  # else a sum that is equal but for its rounding is a month late
        rent, cost, cut_ratio = self.rent_per_month, self.running_per_month, self.inputs.price_cut_ratio
        saved, first = np.zeros_like(wanted), np.full_like(wanted, np.nan)
        month_later, worth = cash_flow.present_value(monthly, 1.0), np.ones_like(wanted)
        for month in range(1, self.inputs.horizon_months + 1):
            is_cut = with_price_cut and month > self.inputs.price_cut_after_months
            saving = np.where(month > self.start, rent * (1 - cut_ratio if is_cut else 1) - cost, 0)
            worth *= month_later
            saved += saving * worth
            first = np.where(np.isnan(first) & (saved >= enough), month, first)
        return first

    def net_present_value(self, *, with_residual: bool = True, with_price_cut: bool = False) -> Values:
        """What owning saves over the node's life, in money of the day of purchase."""
        monthly = cash_flow.monthly_ratio(self["discount_ratio"])
        value = (self.rent_per_month - self.running_per_month) * cash_flow.annuity(monthly, self.start, self.end)
        if with_price_cut:
            since = np.clip(self.inputs.price_cut_after_months, self.start, self.end)
            lost = self.rent_per_month * self.inputs.price_cut_ratio
            value = value - lost * cash_flow.annuity(monthly, since, self.end)
        return np.asarray(value - self.outlay + (self.residual if with_residual else 0))

    @property
    def owned_per_gpu_hour(self) -> Values:
        """Cost of a delivered GPU-hour over the node's life: (K CRF − residual SFF + running) / delivered hours a year."""
        rate, years = self["discount_ratio"], self["life_years"]
        paid = self.outlay * cash_flow.present_value(rate, -self.start / MONTHS_PER_YEAR)  # with the lead's interest
        sold = self["residual_ratio"] * self["purchase_per_node"]
        yearly = (
            paid * cash_flow.capital_recovery(rate, years)
            - sold * cash_flow.sinking_fund(rate, years)
            + self.running_per_month * MONTHS_PER_YEAR
        )
        return np.asarray(yearly / (self.inputs.gpus_per_node * HOURS_PER_YEAR * self["expected_utilisation"]))

    def break_even_utilisation(self, months: Any) -> Values:
        """Least utilisation at which savings cover the outlay within ``months`` of the purchase, with residual 0.

        Returns:
          A ratio; NaN where even a full node does not pay; 0 where a commitment costs more than owning, used or not.
        """
        monthly = cash_flow.monthly_ratio(self["discount_ratio"])
        worth = np.asarray(cash_flow.annuity(monthly, self.start, np.maximum(months, self.start)))
        needed = np.divide(self.outlay, worth, out=np.full_like(worth, np.inf), where=worth > 0)
        full = self["price"] * self["rented_price_ratio"] * self.inputs.gpus_per_node * HOURS_PER_MONTH
        least = (needed + self.running_per_month) / full
        pays = np.where(least <= 1, least, np.nan)
        return np.where((self["is_committed"] > 0) & (least <= 1), 0, pays)


def break_even(inputs: Inputs) -> pl.DataFrame:
    """One row for each comparator and utilisation, in the order of the inputs.

    Paybacks are whole months from the purchase, null if never within the horizon; money is rounded to millionths;
    ``payback_months`` is discounted with residual 0; ``npv`` is over the node's life with the stated residual.
    """
    pairs = [(one, used) for one in inputs.comparators for used in inputs.utilisations]
    cases = Cases.of(inputs, [one for one, _ in pairs], {"expected_utilisation": np.array([used for _, used in pairs])})
    payback, npv = cases.payback_months(), cases.net_present_value()
    npv_after_cut = cases.net_present_value(with_price_cut=True)
    found = pl.DataFrame(
        {
            "comparator": [one.name for one, _ in pairs],
            "utilisation": cases["expected_utilisation"],
            "payback_months": payback,
            "undiscounted_payback_months": cases.payback_months(is_discounted=False),
            "payback_with_residual_months": cases.payback_months(with_residual=True),
            "pays_within_life": payback <= cases.end,
            "owned_per_gpu_hour": cases.owned_per_gpu_hour,
            "rented_per_gpu_hour": cases.rented_per_gpu_hour,
            "npv": npv,
            "npv_without_residual": cases.net_present_value(with_residual=False),
            "break_even_utilisation": cases.break_even_utilisation(cases.end),
            "payback_after_price_cut_months": cases.payback_months(with_price_cut=True),
            "npv_after_price_cut": npv_after_cut,
            "price_cut_loss": npv - npv_after_cut,
            "price_cut_ratio": inputs.price_cut_ratio,
            "discount_rate": inputs.discount_ratio,
            "residual": inputs.residual_ratio,
            "life_months": cases.end - cases.start,
            "is_committed": [one.is_committed for one, _ in pairs],
            "source": [one.source for one, _ in pairs],
            "observed_at": [one.observed_at for one, _ in pairs],
            "currency": inputs.currency,
        }
    )
    return tidy(found)


def break_even_utilisations(inputs: Inputs, horizons_months: Sequence[int]) -> pl.DataFrame:
    """Least utilisation at which owning pays, one row for each comparator and horizon; null where none up to 1 does."""
    pairs = [(one, months) for one in inputs.comparators for months in horizons_months]
    cases = Cases.of(inputs, [one for one, _ in pairs], {})
    months = np.array([months for _, months in pairs])
    return tidy(
        pl.DataFrame(
            {
                "comparator": [one.name for one, _ in pairs],
                "within_months": months,
                "break_even_utilisation": cases.break_even_utilisation(months),
            }
        )
    )


def upfront_returns(inputs: Inputs) -> pl.DataFrame:
    """The implied yearly return of each upfront offer, and whether it beats what money costs."""
    offers = inputs.upfront_offers
    returns = [
        cash_flow.implied_upfront_return(one.upfront_price_per_hour, one.no_upfront_price_per_hour, one.term_years)
        for one in offers
    ]
    columns = {field.name: [getattr(one, field.name) for one in offers] for field in fields(UpfrontOffer)}
    return pl.DataFrame(
        {
            **columns,
            "implied_return_ratio": pl.Series(returns, dtype=pl.Float64),
            "discount_rate": pl.repeat(inputs.discount_ratio, len(offers), dtype=pl.Float64, eager=True),
            "pays_upfront": [one is None or one > inputs.discount_ratio for one in returns],
        }
    )


def tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Months whole, other numbers to six places, and null for NaN."""
    return frame.with_columns(pl.selectors.float().fill_nan(None).round(6)).with_columns(
        pl.selectors.matches(r"(^|_)months$").cast(pl.Int64)
    )
