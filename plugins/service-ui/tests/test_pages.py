"""The routes of the pages, with the tracker's application around them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from importlib import resources
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from heron.errors import UsageError
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.observed.engine_metrics import ENGINE_METRICS, MANAGER_METRICS
from heron_service_tracker.service import TrackerOptions
from heron_service_tracker.watches.observations import Observations
from heron_service_ui.asset_files import read_assets
from heron_service_ui.command import ui
from heron_service_ui.pages import ui_pages
from heron_testing.fake_clock import FakeClock

TOKEN = "a-token-of-the-tests"
LOOPBACK = Access(Address("127.0.0.1", 8889))
VENDOR = Path(str(resources.files("heron_service_ui"))) / "assets" / "vendor"


def get(path: str, access: Access = LOOPBACK, *, of_run: bool = False, **headers: str) -> httpx.Response:
    """Ask once."""

    async def ask() -> httpx.Response:
        options = TrackerOptions(("near",), access, period_s=0.5, of_run=of_run)
        observations = Observations(("near",), FakeClock())
        app = application(observations, access, asyncio.Event(), pages=ui_pages(options))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8889") as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.get(path, headers=named)

    return asyncio.run(ask())


def test_the_root_leads_to_the_pages() -> None:
    """A person types only the address."""
    answer = get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize("path", ["/ui/", "/ui/near/words/tasks", "/ui/%3Cscript%3E/../x"])
def test_every_view_is_the_same_shell_without_scripts_of_its_own(path: str) -> None:
    """Nothing of the URL is part of the page, so a URL cannot inject anything."""
    answer = get(path)
    assert answer.status_code == 200
    assert answer.content == get("/ui/").content
    assert re.findall(r"<script[^>]*>[^<]", answer.text) == []
    assert " style=" not in answer.text
    assert 'data-period-s="0.5"' in answer.text


def test_a_page_knows_whether_its_server_ends_with_a_run() -> None:
    """It then says why it gets no newer values, and does not send people to options that it cannot have."""
    assert 'data-run="yes"' in get("/ui/", of_run=True).text
    assert 'data-run="no"' in get("/ui/").text


def test_the_policy_for_content_allows_only_files_of_this_address() -> None:
    """An error text that becomes markup would still run nothing."""
    policy = get("/ui/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'"} <= set(policy.split("; "))
    assert get("/ui/").headers["x-content-type-options"] == "nosniff"
    assert get("/api/v1/topologies").headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_a_file_that_a_browser_has_is_not_sent_again() -> None:
    """It is still asked for, so that a new version of the pages never meets old scripts."""
    first = get("/ui-assets/app.js")
    assert first.status_code == 200
    assert first.headers["content-type"].startswith("text/javascript")
    assert get("/ui-assets/app.js", if_none_match=first.headers["etag"]).status_code == 304


@pytest.mark.parametrize("name", ["", "none.js", "../pages.py", "%2e%2e/pages.py", "vendor", "/etc/passwd"])
def test_nothing_but_the_files_of_the_pages_is_served(name: str) -> None:
    """Files are looked up in a table, never on the disk."""
    assert get(f"/ui-assets/{name}").status_code == 404


def test_the_shell_needs_no_token_and_the_values_do() -> None:
    """A browser cannot send a token with the first request; the page asks for it."""
    access = Access(Address("192.0.2.1", 8889), TOKEN)
    assert 'data-token="yes"' in get("/ui/", access).text
    assert get("/ui-assets/app.js", access).status_code == 200
    assert get("/", access).status_code == 307
    assert get("/api/v1/topologies", access).status_code == 401
    assert get("/ui", access).status_code == 307
    assert get("/topologies", access).status_code == 401


def test_a_page_of_another_site_gets_nothing() -> None:
    """The host and the origin are checked for the files, too."""
    assert get("/ui/", host="evil.example").status_code == 403
    assert get("/ui-assets/app.js", origin="http://evil.example").status_code == 403


def test_every_file_that_the_pages_load_is_in_the_distribution() -> None:
    """A missing module is a blank page, and another host would be a hole."""
    assets = read_assets()
    for name, asset in assets.items():
        if name.endswith(".js") and not name.startswith("vendor/"):
            text = asset.content.decode()
            found = re.findall(r"""(?:from|import)\s*\(?\s*["']\./([^"']+)["']""", text)
            assert set(found) <= set(assets), name
            assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
            assert "https:" not in text
    assert {"style.css", "icon.svg", "vendor/uPlot.css"} <= set(assets)


@pytest.mark.parametrize(
    "sink",
    ["innerHTML", "outerHTML", "insertAdjacent", "dangerously", "document.write", "srcdoc", "eval(", "Function("],
)
def test_no_script_of_the_pages_makes_markup_or_code_of_a_text(sink: str) -> None:
    """Names, values and errors are set as text. The policy for content would refuse the rest, with a broken page."""
    scripts = {name: asset.content.decode() for name, asset in read_assets().items() if name.endswith(".js")}
    own = {name for name in scripts if not name.startswith("vendor/")}
    assert len(own) > 10
    assert {name for name in own if sink in scripts[name]} == set()


def test_files_of_other_projects_are_unchanged_and_have_their_licences() -> None:
    """The table says what they are; a changed file would hide in a megabyte of code."""
    table = (VENDOR / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", table, re.MULTILINE))
    files = {path.name for path in VENDOR.iterdir() if path.suffix in {".js", ".css"}}
    assert set(listed) == files
    for name, digest in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
    for project in ("dagre", "graphlib", "htm", "preact", "uPlot"):
        assert (VENDOR / f"{project}-LICENSE.txt").stat().st_size > 500


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--address", "0.0.0.0:0"], "other machines reach 0.0.0.0: give --token-file"),
        (["--profile", "locall"], "profile 'locall' does not exist (nearest: 'local')"),
        (["--set", "a"], "--set a: not of the form KEY=VALUE"),
        (["--set", "a=1", "--set", "a=2"], "--set a: given twice"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(words: list[str], message: str) -> None:
    """Nothing listens before the options are checked."""
    result = CliRunner().invoke(ui, words)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_charts_know_the_metrics_of_the_engine_that_the_history_keeps() -> None:
    """A metric that only one of them has would be a chart that is always empty, or a history that nobody sees."""
    text = read_assets()["engine_metrics.js"].content.decode()
    for name, kept in (("TEXTS", set(ENGINE_METRICS)), ("OF_MANAGERS", set(MANAGER_METRICS))):
        (table,) = re.findall(rf"^const {name} = {{(.*?)^}};", text, re.DOTALL | re.MULTILINE)
        assert set(re.findall(r"""["\s]([a-z][a-z-]*)"?:""", table)) == kept
