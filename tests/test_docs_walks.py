"""The walks through the code name functions that exist, and each step leads to the next one."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from heron.api.definition import StreamDefinition
from heron.clock import monotonic_s
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.generated_emit import SPOUT_SIGNATURE, emit_text
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import KeyedEdge, KeyMemo, KeySplitter, StreamRoutes
from heron.instance.output.tracked_stream import RootStream
from heron.planner.key_owners import even_owners

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "walks"
PAGES = sorted(FOLDER.glob("*.md"))
BASES = (ROOT / "heron-core" / "src" / "heron", *sorted(ROOT.glob("plugins/*/src")))
HEADER = "| step | file | function | reached by | in and out |"
AUTHOR = "your file"
REACHED = re.compile(r"`([^`]+)`(?: in (\d+))?")
COUNTS = re.compile(r"\*\*(\d+) steps, (\d+) functions, (\d+) files\*\*")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """A row of a walk; the code of an author has no `file`."""

    number: int
    file: str
    function: str
    link: str
    origin: int


@dataclass(frozen=True, slots=True)
class Module:
    """The functions of a file by qualified name, without docstrings, and its constants."""

    functions: dict[str, str]
    constants: dict[str, str]


def steps_of(text: str) -> list[Step]:
    """The rows of all tables of a walk."""
    steps: list[Step] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == HEADER:
            next(lines)
            for row in lines:
                if not row.startswith("|"):
                    break
                steps.append(step_of(row, len(steps)))
    return steps


def step_of(row: str, before: int) -> Step:
    number, file, function, reached, _ = (cell.strip() for cell in row.strip().strip("|").split(" | "))
    link, origin = "", before
    if found := REACHED.fullmatch(reached):
        link, origin = found[1], int(found[2] or before)
    path = "" if file == AUTHOR else file.strip("`")
    return Step(int(number), path, function.strip("`"), link, origin)


@cache
def module(file: str) -> Module:
    """The parsed file."""
    path = next((base / file for base in BASES if (base / file).is_file()), None)
    if path is None:
        return Module({}, {})
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions: dict[str, str] = {}
    collect(tree, "", functions)
    return Module(functions, dict(constants(tree)))


def collect(node: ast.AST, prefix: str, functions: dict[str, str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            collect(child, f"{prefix}{child.name}.", functions)
        elif isinstance(child, ast.FunctionDef):
            has_docstring = ast.get_docstring(child) is not None
            functions[prefix + child.name] = "\n".join(map(ast.unparse, child.body[has_docstring:]))


def constants(tree: ast.Module) -> list[tuple[str, str]]:
    """The names and values of strings that a file defines."""
    return [
        (target.id, node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def has(step: Step, link: str) -> bool:
    """Whether a link is the name or the module of a step's function, or occurs in its body; a class is its __init__."""
    if not step.file or link == step.function.removesuffix(".__init__").rpartition(".")[2]:
        return True
    if link.replace(".", "/") + ".py" in (step.file, f"heron/{step.file}"):
        return True
    body = module(step.file).functions.get(step.function, "")
    return re.search(rf"(?<!\w){re.escape(link)}(?!\w)", body) is not None


def broken(steps: list[Step]) -> list[str]:
    """The rows that do not agree with the code."""
    faults = []
    for place, step in enumerate(steps, 1):
        if step.number != place:
            faults.append(f"row {place} has the number {step.number}")
        if step.file and step.function not in module(step.file).functions:
            faults.append(f"step {step.number}: {step.file} has no {step.function}")
        elif step.link:
            faults += broken_link(step, steps)
        elif place > 1:
            faults.append(f"step {step.number}: it names no link")
    return faults


def broken_link(step: Step, steps: list[Step]) -> list[str]:
    if not 0 < step.origin < step.number:
        return [f"step {step.number}: {step.origin} is not a step before it"]
    origin = steps[step.origin - 1]
    if not has(origin, step.link):
        return [f"step {step.number}: {step.link!r} is not in {origin.file} {origin.function}, step {origin.number}"]
    value = module(origin.file).constants.get(step.link)  # the name of what is loaded by name
    if not (value.endswith(f":{step.function}") if value else has(step, step.link)):
        return [f"step {step.number}: {step.link!r} is not in {step.file} {step.function}"]
    return []


def counts(steps: list[Step]) -> tuple[int, int, int]:
    """Steps, functions and files of the engine."""
    own = [(step.file, step.function) for step in steps if step.file]
    return len(steps), len(set(own)), len({file for file, _ in own})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_step_names_a_function_that_leads_to_the_next(page: Path) -> None:
    """Readers follow with the code open; a step that is not there ends the walk."""
    steps = steps_of(page.read_text(encoding="utf-8"))
    assert len(steps) > 20
    assert broken(steps) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_counts_of_a_walk_are_those_of_its_table(page: Path) -> None:
    """They show whether the way through the code gets shorter."""
    text = page.read_text(encoding="utf-8")
    (stated,) = COUNTS.findall(text)
    assert tuple(map(int, stated)) == counts(steps_of(text))


def test_the_generated_emit_is_the_one_that_the_page_shows() -> None:
    """Readers find it nowhere else: it is text until a component runs."""
    origin = StreamOrigin(1, 0, 1, 1000, 100_000, 1_000_000, lambda _stream, _row, _error: None)
    memo = KeyMemo(even_owners(12, (2, 3)), single=True)
    splitter = KeySplitter(memo)
    routes = StreamRoutes(splitters=(splitter,), keyed=(KeyedEdge((0,), memo, splitter.picks),))
    stream = RootStream(0, StreamDefinition("default", ("word",)), routes, origin, PendingRoots(monotonic_s))
    (shown,) = CODE.findall((FOLDER / "tuple.md").read_text(encoding="utf-8"))
    assert shown == emit_text(stream, SPOUT_SIGNATURE, with_ids=False)


def test_the_walks_are_those_that_the_documents_link() -> None:
    """A page that is not linked is not read."""
    names = {page.name for page in PAGES}
    assert names == {"submit.md", "tuple.md", "update.md"}
    for document in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"\(docs/walks/(\w+\.md)\)", (ROOT / document).read_text(encoding="utf-8"))) == names


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| 2 | `stmgr/router.py` | `Router._put` | `_put` | |", ""),
        ("| 3 | `stmgr/router.py` | `Router._put` | `_put` | |", "row 2 has the number 3"),
        ("| 2 | `stmgr/router.py` | `Router.gone` | `_put` | |", "step 2: stmgr/router.py has no Router.gone"),
        ("| 2 | `stmgr/gone.py` | `Router._put` | `_put` | |", "step 2: stmgr/gone.py has no Router._put"),
        ("| 2 | `stmgr/router.py` | `Router._put` | — | |", "step 2: it names no link"),
        ("| 2 | `stmgr/router.py` | `Router._put` | `_put` in 2 | |", "step 2: 2 is not a step before it"),
        (
            "| 2 | `stmgr/router.py` | `Router._put` | `other` | |",
            "step 2: 'other' is not in stmgr/router.py Router.route, step 1",
        ),
        (
            "| 2 | `stmgr/router.py` | `Router._put` | `traced` | |",
            "step 2: 'traced' is not in stmgr/router.py Router._put",
        ),
    ],
)
def test_a_row_that_does_not_agree_with_the_code_is_found(row: str, fault: str) -> None:
    """Each kind of fault that a change of the code, or of the page, can leave."""
    first = "| 1 | `stmgr/router.py` | `Router.route` | — | |"
    assert broken(steps_of("\n".join((HEADER, "|---|", first, row)))) == ([fault] if fault else [])
