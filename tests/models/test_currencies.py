from __future__ import annotations

import re

from models.currencies import CURRENCIES


def test_codes_are_three_letters_and_those_of_the_real_bills_are_known() -> None:
    assert all(re.fullmatch("[A-Z]{3}", code) for code in CURRENCIES)
    assert {"USD", "EUR", "CNY", "GBP", "JPY", "CHF"} <= CURRENCIES


def test_what_no_one_pays_with_is_unknown() -> None:
    assert not {"USX", "XTS", "BTC", "DEM"} & CURRENCIES
