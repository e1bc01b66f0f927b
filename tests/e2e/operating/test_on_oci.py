"""Packages in a real registry: versions, tags, rollbacks, other hosts, damages, refusals."""

from __future__ import annotations

import base64
import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from registry_front import Answer, Front, serving

from heron_testing.sandbox import sandbox_at
from heron_testing.waiting import wait_until
from heron_testing_servers.oci_registry import OciRegistry

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

START_S = 60.0
PROGRAM = """
import sys
import time
from pathlib import Path

from heron.api import Bolt, Grouping, Spout, TopologyBuilder
from shop_version import VERSION


class Ticks(Spout):
    outputs = ("tick",)

    def next_tuple(self):
        self.emit([1])
        time.sleep(0.05)


class Note(Bolt):
    def initialize(self, config, context):
        self.place = Path(config["place"])

    def process(self, tup):
        self.place.write_text(VERSION)


if __name__ == "__main__":
    builder = TopologyBuilder("shop")
    builder.set_config({"place": sys.argv[1]})
    ticks = builder.add_spout("ticks", Ticks, par=1)
    builder.add_bolt("note", Note, par=1, inputs={ticks: Grouping.SHUFFLE})
    builder.build_and_submit()
"""


class Shop:
    """A program in versions; a running one writes its version to a file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "author" / "shop.py"
        self.file.parent.mkdir()
        # A registry has equal blobs of all repositories once, so one test would damage those of another.
        self.file.write_text(f"{PROGRAM}# {secrets.token_hex(8)}\n", encoding="utf-8")
        self._noted = folder / "noted"

    @property
    def argument(self) -> str:
        """The argument of the program."""
        return str(self._noted)

    def change(self, version: str) -> None:
        """Change the program."""
        (self.file.parent / "shop_version.py").write_text(f"VERSION = {version!r}\n", encoding="utf-8")

    def runs(self, version: str) -> None:
        """Wait until that version runs, and only then forget what has run."""
        wait_until(lambda: self._noted.is_file() and self._noted.read_text() == version, START_S, f"version {version}")
        self._noted.unlink()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def front(oci_registry: OciRegistry) -> Front:
    return Front(oci_registry.address)


@pytest.fixture
def repository(front: Front) -> Iterator[str]:
    """A repository for each test, whose registry can refuse."""
    with serving(front.handler) as host:
        yield f"{host}/tests/{secrets.token_hex(8)}"


def use(sandbox: Sandbox, repository: str, more: str = "") -> tuple[str, str]:
    """Sign in as `docker login` does, and write the profile ``cloud`` of a host; return the options that select it."""
    folder = sandbox.home / ".docker"
    folder.mkdir()
    entry = {"auth": base64.b64encode(f"{OciRegistry.user}:{OciRegistry.password}".encode()).decode()}
    config = json.dumps({"auths": {repository.partition("/")[0]: entry}})
    (folder / "config.json").write_text(config, encoding="utf-8")
    options = f"driver: oci, repository: '{repository}', plain_http: true{more}"
    return sandbox.write_profile("cloud", f"extends: local\nuploader: {{{options}}}\n")


def submitted(sandbox: Sandbox, shop: Shop, version: str, *options: str) -> HeronRun:
    """Submit that version of the program, and wait until it runs."""
    shop.change(version)
    run = sandbox.start(shop.file, *options, command="submit cloud", args=(shop.argument,))
    assert run.wait() == 0, run.all_output
    shop.runs(version)
    return run


def versions(sandbox: Sandbox, here: tuple[str, str]) -> dict[str, tuple[str, list[str]]]:
    """The stored packages: version and tags by URI."""
    listed = json.loads(sandbox.output_of("packages", "list", *here, "--json"))
    assert all(each["name"] == "shop" and each["whole"] for each in listed)
    return {each["uri"]: (each["version"], each["tags"]) for each in listed}


@pytest.fixture
def other_host(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Another home: other state, other jobs, other files."""
    with sandbox_at(Path(tempfile.mkdtemp(prefix="he2e-")), request) as box:
        yield box


def test_versions_are_tagged_rolled_back_and_started_elsewhere_without_the_source(
    sandbox: Sandbox, other_host: Sandbox, repository: str, shop: Shop, front: Front
) -> None:
    """A release: each version is stored once, a tag moves, and a host that has only the profile follows the tag."""
    here, there = use(sandbox, repository), use(other_host, repository)
    submitted(sandbox, shop, "1")
    assert sandbox.output_of("packages", "tag", "shop:latest", "live", *here).startswith("shop:live is version ")
    sandbox.output_of("packages", "tag", "shop:live", "v1", *here)
    sandbox.heron("kill", "shop", *here)
    first_bytes, front.sent_bytes = front.sent_bytes, 0
    submitted(sandbox, shop, "2")
    assert front.sent_bytes < first_bytes
    sandbox.output_of("packages", "tag", "shop:latest", "live", *here)
    sandbox.heron("kill", "shop", *here)
    stored = versions(sandbox, here)
    assert sorted(tags for _, tags in stored.values()) == [["latest", "live"], ["v1"]]
    shutil.rmtree(shop.file.parent)
    started = "submit", "cloud", "--package", "shop:live"
    other_host.submits = True
    assert "shop submitted" in other_host.output_of(*started)
    shop.runs("2")
    other_host.heron("kill", "shop", *there)
    sandbox.output_of("packages", "tag", "shop:v1", "live", *here)  # the rollback
    other_host.output_of(*started)
    shop.runs("1")
    assert "in use by shop" in other_host.output_of("packages", "list", *there)
    shown = json.loads(other_host.output_of("packages", "show", "shop:live", *there, "--json"))
    assert (shown["tags"], shown["topology"]) == (["live", "v1"], "shop")
    other_host.heron("kill", "shop", *there)
    newest = next(version for version, tags in stored.values() if "latest" in tags)
    plan = other_host.output_of("submit", "cloud", "--package", f"shop:{newest[:8]}", "--dry-run")
    assert "note" in plan
    for tag in ("live", "v1"):
        sandbox.output_of("packages", "untag", f"shop:{tag}", *here)
    assert "2 packages removed" in sandbox.output_of("packages", "prune", "--older-than", "0", *here)
    assert versions(sandbox, here) == {}
    output = sandbox.log_text() + other_host.log_text() + "".join(each.all_output for each in sandbox.runs)
    assert OciRegistry.password not in output


def test_a_tampered_layer_stops_only_the_container_that_fetches_it(
    sandbox: Sandbox, repository: str, shop: Shop, oci_registry: OciRegistry, front: Front
) -> None:
    """Nothing of it is unpacked; `heron list` names the layer, and its remedy works although the blob stays."""
    here = use(sandbox, repository)
    run = submitted(sandbox, shop, "1")
    blobs = {each.rpartition("sha256:")[2] for each in front.requests if each.startswith("GET") and "/blobs/" in each}
    largest = max((oci_registry.blob_file(each) for each in blobs), key=lambda each: each.stat().st_size)
    content = largest.read_bytes()
    largest.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (executor,) = run.processes("executor", "c1.json")
    executor.kill()

    def reason() -> str:
        return str(json.loads(sandbox.output_of("list", "cloud", "--json")))

    wait_until(lambda: "the registry's copy was changed" in reason(), START_S, "the reason")
    assert f"not {largest.parent.name}" in reason()
    sandbox.heron("kill", "shop", *here)
    submitted(sandbox, shop, "1", "--set", "uploader.check_layers=true")
    sandbox.heron("kill", "shop", *here)


def test_a_registry_that_is_away_holds_only_a_starting_container(
    sandbox: Sandbox, repository: str, shop: Shop, oci_registry: OciRegistry
) -> None:
    """Data flows on; the container retries until the registry is back. A submission meanwhile changes nothing."""
    here = use(sandbox, repository)
    run = submitted(sandbox, shop, "1")
    oci_registry.kill()
    try:
        shop.runs("1")  # again
        (executor,) = run.processes("executor", "c1.json")
        executor.kill()
        wait_until(
            lambda: "registry" in sandbox.output_of("list", "cloud", "--json"), START_S, "a failed download in the list"
        )
    finally:
        oci_registry.start()
    wait_until(lambda: any(each.pid != executor.pid for each in run.processes("stmgr", "c1")), START_S, "container 1")
    shop.runs("1")
    sandbox.heron("kill", "shop", *here)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(401), "401 .*user 'heron' of .*config.json"),
        (Answer(403), r"403 .*may not store \(push\)"),
        (Answer(429, {"Retry-After": "600"}), "429 .*asks to wait 600 s, the limit here is 5 s"),
    ],
    ids=["401", "403", "429"],
)
def test_a_submission_that_the_registry_refuses_leaves_nothing(
    sandbox: Sandbox, repository: str, shop: Shop, front: Front, answer: Answer, message: str
) -> None:
    """The error has the remedy, and everything before the upload is undone."""
    here = use(sandbox, repository)
    shop.change("1")
    front.answers["POST .*/uploads/"] = answer
    sandbox.submits = True
    output = sandbox.output_of("submit", "cloud", str(shop.file), "--", shop.argument, code=2)
    assert re.search(message, output), output
    assert OciRegistry.password not in output
    assert not sandbox.remaining()
    assert "0 packages" in sandbox.output_of("packages", "list", *here)


def test_an_unsigned_package_is_refused_before_anything_starts(
    sandbox: Sandbox, other_host: Sandbox, repository: str, shop: Shop, tmp_path: Path
) -> None:
    """A policy in the profile of a host: what a build has signed starts, other packages do not."""
    key = generate_private_key(SECP256R1())
    (tmp_path / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "key").chmod(0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    here = use(sandbox, repository)
    there = use(other_host, repository, f", verify_key: {json.dumps(public)}")
    submitted(sandbox, shop, "1")
    sandbox.output_of("packages", "tag", "shop:latest", "live", *here)
    started = "submit", "cloud", "--package", "shop:live"
    assert "shop:live is refused: it has no signature" in other_host.output_of(*started, code=2)
    assert not other_host.remaining()
    sandbox.heron("kill", "shop", *here)
    signing = "--set", f"uploader.sign_key_file={tmp_path / 'key'}"
    run = sandbox.start(shop.file, *signing, command="submit cloud", args=(shop.argument,))
    assert run.wait() == 0, run.all_output
    sandbox.heron("kill", "shop", *here)
    other_host.submits = True
    other_host.output_of(*started)
    shop.runs("1")
    other_host.heron("kill", "shop", *there)
    assert "signatures are checked" in other_host.output_of("profiles", "check", "cloud")
