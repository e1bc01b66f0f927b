"""The tutorial is carried out command by command, as a reader does, and its driver keeps the contract."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing_servers.etcd import EtcdServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial-driver.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\d+(\\\.\d+)?s\b")
EXAMPLE = {
    "statemgr-etcd/README.md",
    "statemgr-etcd/pyproject.toml",
    "statemgr-etcd/src/heron_statemgr_etcd/__init__.py",
    "statemgr-etcd/src/heron_statemgr_etcd/driver.py",
    "statemgr-etcd/src/heron_statemgr_etcd/gateway.py",
    "statemgr-etcd/src/heron_statemgr_etcd/hold.py",
    "statemgr-etcd/src/heron_statemgr_etcd/node.py",
    "statemgr-etcd/src/heron_statemgr_etcd/py.typed",
    "statemgr-etcd/src/heron_statemgr_etcd/watch.py",
    "statemgr-etcd/tests/test_contract.py",
}
"""The files of the finished driver, which the reader has from a clone. `./dev verify` reads their names here."""
INSTALLED = ("plugins/bundle-local", "plugins/cli", "plugins/testing")
ETCD_URL = "http://127.0.0.1:2379"  # the address on the page, where an ordinary etcd listens
STEP_S = 300


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str


class Reader:
    """Carries out the page in a folder and an environment of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self._place = folder.parent / "place"

    def do(self, block: Block, expected: str | None) -> None:
        if block.language == "sh":
            self._run(block.text, expected)
        elif block.language == "python" and not block.text.startswith("# "):
            assert block.text.strip() in quotable(StateManagerContract), "a case that the suite does not have"
        elif block.language == "python":
            path, text = self._named(block)
            path.write_text(merged(path.read_text(encoding="utf-8"), text), encoding="utf-8")
        elif block.language == "toml":
            self._change_lines(*self._named(block))
        elif block.language == "yaml":
            path, text = self._named(block)
            path.parent.mkdir(parents=True)
            path.write_text(text.replace(ETCD_URL, self._environment["ETCD_URL"]), encoding="utf-8")

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
        for line in (expected or "").splitlines():
            assert re.search(r"\b" + SECONDS.sub(r"[\\d.]+s", re.escape(line)), ran.stdout), ran.stdout
        if ran.returncode == 0:
            self.folder = Path(self._place.read_text(encoding="utf-8").strip())

    def _named(self, block: Block) -> tuple[Path, str]:
        first, _, rest = block.text.partition("\n")
        home, name = self._environment["HOME"], first.removeprefix("# ")
        return self.folder / name.replace("~", home), rest

    def _change_lines(self, path: Path, lines: str) -> None:
        """Replace each line with the new line of the same key."""
        text = path.read_text(encoding="utf-8")
        for line in lines.splitlines():
            text, count = re.subn(rf"^{re.escape(line.split(' = ')[0])} = .*$", line, text, flags=re.MULTILINE)
            assert count == 1, line
        path.write_text(text, encoding="utf-8")


def quotable(suite: type) -> str:
    """Return the source of a suite as the page quotes it: methods at the margin, without docstrings."""
    return re.sub(r'^ +""".*?"""\n', "", textwrap.dedent(inspect.getsource(suite)), flags=re.MULTILINE).replace(
        "\n    ", "\n"
    )


def merged(module: str, block: str) -> str:
    """Return the driver's module with the parts of a block merged in.

    A class or function replaces the one with the same name; a function with `self` belongs to the driver's class. Other
    definitions go to the end of the class or module, and imports to the beginning.
    """
    for node in ast.parse(block).body:
        text = source(block, node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = module.replace("\nfrom collections", f"\n{text}\nfrom collections", 1)
            continue
        assert isinstance(node, ast.FunctionDef | ast.ClassDef), text
        tree = ast.parse(module)
        driver = next(each for each in tree.body if isinstance(each, ast.ClassDef) and each.name.endswith("Manager"))
        method = isinstance(node, ast.FunctionDef) and [each.arg for each in node.args.args][:1] == ["self"]
        siblings = driver.body if method else tree.body
        text = textwrap.indent(text, "    ") if method else text
        old = next((each for each in siblings if getattr(each, "name", "") == node.name), None)
        if old is not None:
            module = replaced(module, first_line(old), old.end_lineno or 0, text)
        else:
            last = siblings[-1].end_lineno or 0
            module = replaced(module, last + 1, last, f"\n{text}" if method else f"\n\n{text}")
    return module


def first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def source(block: str, node: ast.stmt) -> str:
    return "\n".join(block.splitlines()[first_line(node) - 1 : node.end_lineno])


def replaced(module: str, first: int, last: int, text: str) -> str:
    lines = module.splitlines()
    return "\n".join([*lines[: first - 1], text, *lines[last:], ""])


def steps() -> Iterator[tuple[Block, str | None]]:
    """Return each block with the output that the page shows for it, if any."""
    blocks = [Block(*found.groups()) for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    for block, following in zip(blocks, [*blocks[1:], Block("", "")], strict=True):
        yield block, following.text.strip() if following.language == "text" else None


def projects(*folders: str) -> set[Path]:
    """The folders of these distributions and of the distributions of this repository that they need."""
    found: set[Path] = set()
    waiting = [ROOT / folder for folder in folders]
    while waiting:
        folder = waiting.pop()
        if folder in found:
            continue
        found.add(folder)
        needed = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
        names = [re.split(r"[^\w-]", each)[0] for each in needed if each.startswith("heron-")]
        waiting += [ROOT / name if name == "heron-core" else ROOT / "plugins" / name[6:] for name in names]
    return found


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The part of a clone of this repository that the page uses."""
    for name in EXAMPLE:
        path = Path("examples", "plugins", name)
        copy = tmp_path / "clone" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
    return tmp_path / "clone"


@pytest.fixture
def environment(tmp_path: Path, clone: Path, etcd: EtcdServer) -> dict[str, str]:
    """An environment with only pip, which installs Heron's distributions from wheels of this tree."""
    uv = (sys.executable, "-m", "uv")
    dist, venv = tmp_path / "dist", tmp_path / "venv"
    constraints = str(ROOT / "constraints.txt")
    subprocess.run((*uv, "venv", "-q", "--seed", "--python", sys.executable, str(venv)), check=True, timeout=STEP_S)
    for project in projects(*INSTALLED):
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
        "REPO": str(clone),
        "ETCD_URL": etcd.url,
    }


def first_topology() -> str:
    """Return the topology of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_driver_of_the_tutorial_keeps_the_contract(tmp_path: Path, environment: dict[str, str]) -> None:
    """Readers follow the page literally, so every command must work."""
    folder = tmp_path / "work"
    folder.mkdir()
    reader = Reader(folder, environment)
    for block, expected in steps():
        if "hello.py" in block.text:
            (reader.folder / "hello.py").write_text(first_topology(), encoding="utf-8")
        reader.do(block, expected)
    assert reader.folder == folder / "statemgr-etcd"
