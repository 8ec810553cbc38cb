"""The pages as a person sees them: a real server, a real browser, the small published file."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openpyxl import load_workbook
from playwright.sync_api import Page, expect, sync_playwright

from tests.conftest import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.component("chromium")
APP = Path(__file__).resolve().parents[2] / "dashboards" / "app.py"
PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def address(published_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of our own server, started from another folder as a person may do."""
    yield from _served(published_file, tmp_path_factory.mktemp("streamlit"))


@pytest.fixture(scope="module")
def procurement_address(procurement_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server whose ledger also knows prices, commitments and a plan."""
    yield from _served(procurement_file, tmp_path_factory.mktemp("streamlit"))


def _served(path: Path, folder: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", APP, "--server.headless=true", "--server.address=127.0.0.1"]
    log = folder / "log"
    with log.open("w") as out:
        server = subprocess.Popen([*command, f"--server.port={port}", "--", path], cwd=folder, stdout=out, stderr=out)
        try:
            _wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=20)


def _wait_for(health: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(health, timeout=5):  # noqa: S310 - our own server
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"streamlit does not answer at {health}: {log.read_text()}")


@pytest.fixture(scope="module")
def page(chromium: str) -> Iterator[Page]:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        opened = browser.new_page(viewport={"width": 1400, "height": 1600})
        opened.set_default_timeout(PATIENCE_MS)
        yield opened
        browser.close()


def visit(page: Page, address: str) -> None:
    """Open a page and wait until it is drawn; fail if it shows an exception."""
    page.goto(address)
    expect(page.get_by_text("All amounts in USD")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stDataFrame").first.locator("canvas").first).to_be_visible(timeout=PATIENCE_MS)
    assert page.get_by_test_id("stException").count() == 0


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("", "33,573.77"),
        ("gpu_time", "11,520.0"),
        ("proof", "98,651.31"),
        ("findings", "6"),
    ],
    ids=["chargeback", "gpu_time", "proof", "findings"],
)
def test_each_page_shows_its_numbers_and_downloads(page: Page, address: str, path: str, number: str) -> None:
    visit(page, f"{address}/{path}")
    expect(page.get_by_text(number).first).to_be_visible()
    expect(page.get_by_role("button", name="CSV").first).to_be_visible()
    expect(page.get_by_role("button", name="Excel").first).to_be_visible()


@pytest.mark.parametrize(
    ("path", "number"),
    [("plan", "410,000"), ("commitments", "11,520"), ("break_even", "after 15 months"), ("spot", "Spot pays.")],
    ids=["plan", "commitments", "break_even", "spot"],
)
def test_each_page_of_procurement_shows_its_numbers_and_downloads(
    page: Page, procurement_address: str, path: str, number: str
) -> None:
    test_each_page_shows_its_numbers_and_downloads(page, procurement_address, path, number)


def test_a_click_on_a_business_unit_opens_its_teams_and_a_breadcrumb_leads_back(page: Page, address: str) -> None:
    visit(page, f"{address}/?month=2026-08")
    # The grid is drawn on a canvas: the second row lies two and a half rows of 35 pixels down.
    page.get_by_test_id("stDataFrame").first.click(position={"x": 140, "y": 88})
    expect(page.get_by_text("By team", exact=False).first).to_be_visible()
    assert "unit=Research" in page.url
    assert "month=2026-08" in page.url
    page.get_by_role("button", name="All business units").click()
    expect(page.get_by_text("By business unit").first).to_be_visible()
    assert "unit" not in page.url


def test_a_table_comes_down_as_a_workbook(page: Page, address: str, tmp_path: Path) -> None:
    visit(page, f"{address}/?month=2026-08")
    with page.expect_download() as download:
        page.get_by_role("button", name="Excel").first.click()
    download.value.save_as(tmp_path / "table.xlsx")
    sheet = load_workbook(tmp_path / "table.xlsx").active
    assert sheet is not None
    assert [cell.value for cell in sheet[1]][:2] == ["Business unit", "GPU-hours"]
    assert [row[0].value for row in sheet.iter_rows(min_row=2)] == ["Platform", "Research", "Products"]


def test_the_month_stays_chosen_on_the_next_page(page: Page, address: str) -> None:
    visit(page, f"{address}/?month=2026-07")
    page.get_by_role("link", name="GPU time").click()
    expect(page.get_by_text("What became of it").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"month=2026-07"))
    expect(page.get_by_text("44.6 %").first).to_be_visible()


@pytest.mark.parametrize(
    ("path", "command"), [("plan", "gpuledger plan --record"), ("commitments", "gpuledger ingest commitments")]
)
def test_a_page_without_facts_says_what_to_type(page: Page, address: str, path: str, command: str) -> None:
    page.goto(f"{address}/{path}")
    expect(page.get_by_text(command)).to_be_visible(timeout=PATIENCE_MS)
    assert page.get_by_test_id("stException").count() == 0


def test_the_charts_of_a_plan_are_drawn_and_another_gpu_model_is_no_error(page: Page, procurement_address: str) -> None:
    visit(page, f"{procurement_address}/plan")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").nth(2)).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("combobox", name=re.compile("GPU model")).click()
    page.get_by_role("option", name="L40S-48GB").click()
    expect(page.get_by_text("The price book has no offer of L40S-48GB")).to_be_visible()
