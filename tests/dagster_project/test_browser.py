"""The web UI as a person uses it: `dagster dev`, a browser, a click on Materialize.

Screenshots of the last run lie in `screenshots/` of the checkout (not in git).
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dagster_project.environment import CHECKOUT
from tests.dagster_project.small_platform import make_platform

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SCREENSHOTS = CHECKOUT / "screenshots"
# Each below the time after which a test counts as hanging, on a busy machine too.
START_S = 240
RUN_S = 200

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start `dagster dev` on a small, empty data set; yield (url, folder)."""
    if not CHROMIUM.exists():
        message = f"{CHROMIUM} is not installed (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    folder = tmp_path_factory.mktemp("ui")
    config = make_platform(folder)
    (folder / "home").mkdir()
    shutil.copy(CHECKOUT / "dagster.yaml", folder / "home")
    port = free_port()
    environment = os.environ | {
        "DAGSTER_HOME": str(folder / "home"),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "OLMO_DATA_CACHE": str(folder / "cache"),
        "OLMO_DATA_CONFIG": str(config),
    }
    workspace = str(CHECKOUT / "workspace.yaml")
    command = [sys.executable, "-m", "dagster", "dev", "-w", workspace, "-h", "127.0.0.1"]
    with (folder / "log").open("wb") as log:
        # A session of its own: started in the background of a shell, Dagster would ignore SIGINT.
        process = subprocess.Popen(
            [*command, "-p", str(port)],
            cwd=folder,
            env=environment,
            start_new_session=True,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/server_info"), START_S, "the web server")
        yield f"http://127.0.0.1:{port}", folder
    finally:
        stop(process)


@pytest.fixture(scope="module")
def page(server):
    sync_api = pytest.importorskip("playwright.sync_api")
    errors: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 1100})
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
    assert errors == []


def test_the_server_starts_on_loopback(server):
    url, _ = server
    assert answers(f"{url}/server_info")


def test_the_sensor_lands_the_files_and_both_runs_succeed(server, page):
    url, folder = server
    dataset = folder / "root/dataset/dataset.json"
    wait_for(dataset.exists, START_S, "the runs that the sensor starts")
    page.goto(f"{url}/runs")
    page.get_by_text("dataset_job").first.wait_for()
    page.get_by_text("sources_job").first.wait_for()
    shoot(page, "1-runs")


def test_the_graph_shows_every_stage(server, page):
    url, _ = server
    page.goto(f"{url}/asset-groups")
    for group in ("sources", "cleaning", "dedup", "tokenizing", "sharding", "ordering", "catalog"):
        page.get_by_text(group, exact=True).first.wait_for()
    shoot(page, "2-graph")
    page.goto(f"{url}/locations/olmo_data/asset-groups/tokenizing/lineage")
    page.get_by_text("token_documents").first.wait_for()
    shoot(page, "3-group")


def test_materialize_is_clicked_and_metadata_and_checks_are_seen(server, page):
    url, _ = server
    open_asset(page, f"{url}/assets/training_dataset", shows="plan_id")
    # The buttons' accessible names hold their icons, so their text is what is looked for.
    page.locator("button", has_text=re.compile(r"^\s*Materialize\s*$")).first.click()
    page.locator("a[href^='/runs/']", has_text="View").first.click()
    page.wait_for_url("**/runs/*")
    page.get_by_text("Success", exact=True).first.wait_for(timeout=RUN_S * 1000)
    shoot(page, "4-run")
    open_asset(page, f"{url}/assets/training_dataset", shows="plan_id")
    for shown in ("plan_id", "instances", "accounting_in_tokens", "sequence_length"):
        page.get_by_text(shown, exact=True).first.wait_for()
    shoot(page, "5-asset")
    page.goto(f"{url}/assets/training_dataset?view=checks")
    for check in (
        "ledgers",
        "accounting",
        "shards",
        "order",
        "provenance",
        "held_out",
        "takedowns",
    ):
        page.get_by_text(check, exact=True).first.wait_for()
    page.get_by_text("Passed").first.wait_for()
    shoot(page, "6-checks")


def test_a_partition_shows_its_figures_and_its_histogram(server, page):
    url, _ = server
    page.goto(f"{url}/assets/clean_documents?view=partitions&partition=stories")
    page.get_by_text("dropped_share", exact=True).first.wait_for()
    page.locator("img[src^='data:image/svg+xml']").first.wait_for()
    shoot(page, "7-partition")


def open_asset(page, url, *, shows):
    """Open an asset's page; on a busy machine its metadata may need a second look."""
    timeout = pytest.importorskip("playwright.sync_api").TimeoutError
    for _ in range(2):
        page.goto(url)
        with contextlib.suppress(timeout):
            page.get_by_text(shows).first.wait_for()
            return
    page.goto(url)
    page.get_by_text(shows).first.wait_for()


def shoot(page, name):
    SCREENSHOTS.mkdir(exist_ok=True)
    page.wait_for_timeout(1500)
    page.screenshot(path=str(SCREENSHOTS / f"{name}.png"))


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.5)


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
