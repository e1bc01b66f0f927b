"""The tutorial's driver is built as its reader would, command by command and file by file, and keeps its contract."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers.etcd import EtcdServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial-driver.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\d+(\\\.\d+)?s\b")
ETCD_URL = "http://127.0.0.1:2379"  # the page's, where an etcd listens that was installed as usual
STEP_S = 300


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str


class Reader:
    """Does what the page says, in a folder and an environment of its own."""

    def __init__(self, folder: Path, environment: dict[str, str], etcd_url: str) -> None:
        self.folder = folder
        self._environment = environment
        self._etcd_url = etcd_url
        self._place = folder.parent / "place"

    def do(self, block: Block, expected: str | None) -> None:
        if block.language == "sh":
            self._run(block.text, expected)
        elif block.language == "python":
            path, text = self._named(block)
            path.write_text(text, encoding="utf-8")
        elif block.language == "toml":
            self._change_lines(*self._named(block))
        elif block.language == "yaml":
            path, text = self._named(block)
            path.parent.mkdir(parents=True)
            path.write_text(text.replace(ETCD_URL, self._etcd_url), encoding="utf-8")

    def _run(self, text: str, expected: str | None) -> None:
        ran = subprocess.run(
            ["bash", "-euc", f"{text}\npwd >'{self._place}'"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_S,
            check=False,
        )
        fails = expected is not None and "failed" in expected
        assert (ran.returncode != 0) == fails, ran.stdout
        if expected is not None:
            assert re.search(r"\b" + SECONDS.sub(r"[\\d.]+s", re.escape(expected)), ran.stdout), ran.stdout
        if ran.returncode == 0:
            self.folder = Path(self._place.read_text(encoding="utf-8").strip())

    def _named(self, block: Block) -> tuple[Path, str]:
        first, _, rest = block.text.partition("\n")
        home, name = self._environment["HOME"], first.removeprefix("# ")
        return self.folder / name.replace("~", home), rest

    def _change_lines(self, path: Path, lines: str) -> None:
        """Each line takes the place of the one with the same key."""
        text = path.read_text(encoding="utf-8")
        for line in lines.splitlines():
            text, count = re.subn(rf"^{re.escape(line.split(' = ')[0])} = .*$", line, text, flags=re.MULTILINE)
            assert count == 1, line
        path.write_text(text, encoding="utf-8")


def steps() -> Iterator[tuple[Block, str | None]]:
    """Each block with what the page says it prints, if it does."""
    blocks = [Block(*found.groups()) for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    for block, following in zip(blocks, [*blocks[1:], Block("", "")], strict=True):
        yield block, following.text.strip() if following.language == "text" else None


def bundled() -> list[Path]:
    """The bundle and the plugins that it brings."""
    bundle = ROOT / "plugins" / "bundle-local"
    project = tomllib.loads((bundle / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[^\w-]", each)[0].removeprefix("heron-") for each in project["dependencies"]]
    return [bundle, *(ROOT / "plugins" / name for name in names if name != "core")]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with pip and nothing else, that gets Heron's distributions from wheels of this tree."""
    uv = (sys.executable, "-m", "uv")
    dist, venv = tmp_path / "dist", tmp_path / "venv"
    constraints = str(ROOT / "constraints.txt")
    subprocess.run((*uv, "venv", "-q", "--seed", "--python", sys.executable, str(venv)), check=True, timeout=STEP_S)
    for project in (ROOT / "heron-core", *bundled()):
        command = (*uv, "build", "-q", "--wheel", "-b", constraints, "--out-dir", str(dist), str(project))
        subprocess.run(command, check=True, timeout=STEP_S)
    home = tmp_path / "home"
    home.mkdir()
    return {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
        "PIP_CONSTRAINT": constraints,
        "PIP_FIND_LINKS": f"{dist} {os.environ.get('PIP_FIND_LINKS', '')}".strip(),
        "PYTEST_ADDOPTS": "",
        "CI": "true",  # the etcd of the outer run is there, so its absence in the inner one would be a mistake
    }


def first_topology() -> str:
    """What the README shows, as its reader has it."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.timeout(600)
def test_driver_of_the_tutorial_keeps_the_contract(
    tmp_path: Path, environment: dict[str, str], etcd: EtcdServer
) -> None:
    """A page that does not work costs its reader an evening, and us the driver that was not written."""
    folder = tmp_path / "work"
    folder.mkdir()
    reader = Reader(folder, environment, etcd.url)
    for block, expected in steps():
        if "hello.py" in block.text:
            (reader.folder / "hello.py").write_text(first_topology(), encoding="utf-8")
        reader.do(block, expected)
    assert reader.folder == folder / "statemgr-etcd"
