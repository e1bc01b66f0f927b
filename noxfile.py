"""The sessions behind ``./dev SESSION``; ``./dev`` alone lists them.

Sessions run in the ``.venv`` that ``dev`` made. The wheels, the other interpreters and the protobuf generator
have virtual environments of their own under ``.nox/``, kept until what they were made from changes.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).resolve().parent
CACHE = ROOT / ".nox"
PYTHONS = ("3.11", "3.12", "3.13")
TEST_TOOLS = ("hypothesis", "psutil", "pytest", "pytest-timeout")
DOCS_TOOLS = ("mkdocs", "mkdocs-material", "mkdocstrings[python]", "ruff")  # ruff writes the signatures

# The oldest protoc whose output the supported protobuf runtimes accept (see heron-core/pyproject.toml).
PROTOC = ("grpcio-tools==1.72.1", "grpcio==1.72.1", "protobuf==6.30.2", "setuptools==80.9.0")
PROTO_SOURCES = ROOT / "heron-core" / "src"

nox.options.default_venv_backend = "none"
nox.options.sessions = ["test"]


@nox.session
def test(session: nox.Session) -> None:
    """Lint, types, the tests of all packages, and an end-to-end test for each guarantee [-- ARGS for pytest]."""
    session.run(sys.executable, "-m", "checks", "test", *session.posargs)


@nox.session
def quick(session: nox.Session) -> None:
    """After an edit: lint, types and tests of what the changed files reach [-- --since REVISION]."""
    session.run(sys.executable, "-m", "checks", "quick", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, import-linter, generated protobuf up to date."""
    session.run(sys.executable, "-m", "ruff", "check", ".")
    session.run(sys.executable, "-m", "ruff", "format", "--check", ".")
    session.run(_script("lint-imports"), env={"PYTHONPATH": ""})
    _check_generated(session)


@nox.session
def types(session: nox.Session) -> None:
    """Mypy strict; -- FILES: only where these are."""
    session.run(sys.executable, "-m", "checks.type_cache", "take")
    for paths in _typed_runs([Path(file) for file in session.posargs]):
        session.run(sys.executable, "-m", "mypy", *paths)
    if not session.posargs:
        session.run(sys.executable, "-m", "checks.type_cache", "keep")


@nox.session
def elsewhere(session: nox.Session) -> None:
    """Run the tests of heron-core on the interpreters other than this one, or on one: -- 3.12."""
    _unit_elsewhere(session)


@nox.session
def contract(session: nox.Session) -> None:
    """Run what needs servers beyond Python; -- FAMILY or NAME: all tests of those plugins [-- ARGS for pytest]."""
    wanted, arguments = "", list(session.posargs)
    if arguments and not arguments[0].startswith("-"):
        wanted = arguments.pop(0)
    paths = _contract_paths()
    chosen = [path for path in paths if (wanted in _contract_words(path) if wanted else not _is_by_itself(path))]
    if not chosen:
        known = sorted({word for path in paths for word in _contract_words(path)})
        session.error(f"no plugin and no test of servers is called {wanted!r}; known: {', '.join(known)}")
    marked = _LONG if wanted else f"servers and {_LONG}"
    # The first test that uses a server waits while it is installed.
    _python_pytest(session, sys.executable, "-m", marked, *chosen, *arguments)


@nox.session
def e2e(session: nox.Session) -> None:
    """Run the tests that cross packages: real processes, discovery, size budget; -- NAME: all tests on that server."""
    named = [path for path in _contract_paths() if _contract_words(path).intersection(session.posargs[:1])]
    if named:
        # Side by side, the longest by itself: both wait for servers most of the time.
        longest = f"test_on_{session.posargs[0]}"
        halves = [[path for path in named if (Path(path).stem == longest) is alone] for alone in (True, False)]
        pytest = [sys.executable, "-m", "pytest", "-m", f"servers and {_LONG}"]
        _together(session, [[*pytest, *half, *session.posargs[1:]] for half in halves if half])
    else:
        _python_pytest(session, sys.executable, *_WITHOUT_SERVERS, "tests", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build all wheels, install and use them as a user would; -- NAME: that plugin's tests with its wheel alone."""
    if session.posargs:
        _alone(session, *session.posargs)
    else:
        _wheel(session)


@nox.session
def proto(session: nox.Session) -> None:
    """Write the protobuf modules anew from the .proto files."""
    _generate(session, PROTO_SOURCES)


@nox.session
def demo(session: nox.Session) -> None:
    """Count the words of real text: ./dev demo [-- --text PATH --out PATH --loops N]; or -- autoscale."""
    if session.posargs == ["autoscale"]:
        session.run(sys.executable, str(ROOT / "examples" / "demo" / "watch_auto_scale.py"))
        return
    # Paths the user gives are relative to where the user stands.
    session.chdir(session.invoked_from)
    session.run(_script("heron"), "run", str(ROOT / "examples" / "word_count.py"), "--", *session.posargs)


@nox.session
def stack(session: nox.Session) -> None:
    """Run Scribe, Kafka, pipelines, a view and its answers over HTTP (examples/stack); -- --measure S: measure it."""
    session.run(sys.executable, str(ROOT / "examples" / "stack" / "stack.py"), *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmark suite; prints ratios to the null engine."""
    session.run(sys.executable, "-m", "bench", *session.posargs)


@nox.session
def verify(session: nox.Session) -> None:
    """Run the suites of servers that have no valid record; -- --list shows them, -- --all runs them all."""
    session.run(sys.executable, "-m", "verify", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Chaos with three seeds, memory, all kills, random pipelines on all engines; -- --minutes 1: a tenth of it."""
    arguments = list(session.posargs)
    if "--minutes" in arguments:
        at = arguments.index("--minutes")
        if at + 1 == len(arguments):
            session.error("--minutes needs a number of minutes, such as --minutes 1")
        session.env["HERON_SOAK_MINUTES"] = arguments[at + 1]
        del arguments[at : at + 2]
    _python_pytest(session, sys.executable, "tests", "plugins", "-m", "soak or chaos", "-s", *arguments)


@nox.session
def chaos(session: nox.Session) -> None:
    """Kill and stop processes of a topology under load; nothing may be lost [-- --mode M --updates --minutes M]."""
    session.run(sys.executable, "-m", "chaos", *session.posargs)


@nox.session
def simulate(session: nox.Session) -> None:
    """Simulate whole topologies from seeds [-- --seed N --runs N --state --trace]."""
    session.env["PYTHONHASHSEED"] = "0"
    session.run(sys.executable, "-m", "heron_testing.seeded", *session.posargs)


@nox.session
def truth(session: nox.Session) -> None:
    """Inject known causes, and write the table of diagnoses into docs/health.md [-- NAME... --minutes M]."""
    session.run(sys.executable, "-m", "ground_truth", *session.posargs)


@nox.session
def scenarios(session: nox.Session) -> None:
    """Let policies size models of topologies, and write what they do into docs/health.md."""
    session.run(sys.executable, "-m", "ground_truth.scenarios")


@nox.session
def pictures(session: nox.Session) -> None:
    """Take the pictures of the web UI in docs/images, and measure how fast its pages appear."""
    pages = "tests/e2e/operating/pictures_of_ui.py"
    taken = "tests/e2e/operating/test_on_chromium.py::test_a_person_comes_from_the_list_to_the_line_of_a_slow_bolt"
    session.env["HERON_PICTURES"] = "yes"
    _python_pytest(session, sys.executable, "-s", taken, pages, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into .nox/site, and check its links; it needs no network to be read."""
    _python_pytest(session, sys.executable, *_DOCS_TESTS, *session.posargs)
    python = _environment(session, "docs", sys.executable, ("-c", "constraints.txt", *DOCS_TOOLS))
    source, site = CACHE / "site-source", CACHE / "site"
    session.run(sys.executable, "-m", "docs_site", "rooms")
    session.run(sys.executable, "-m", "docs_site", "write", str(source), str(site))
    # Strict mode counts warnings, and with -q there would be none.
    session.run(python, "-m", "mkdocs", "build", "-f", str(source / "mkdocs.yml"), env={"NO_MKDOCS_2_WARNING": "1"})
    session.run(sys.executable, "-m", "docs_site", "check", str(site))
    session.log(f"open {site / 'index.html'}, or with a search: python -m http.server -d {site.relative_to(ROOT)}")


def _typed_runs(files: list[Path]) -> list[list[str]]:
    """What mypy checks together: all sources, and trees of tests; only those with one of these files, if there are any.

    A run begins with all that it knows of the core, so runs are few. But no two modules of one run may have the same
    name; `conftest` is one.
    """

    def wanted(paths: list[str]) -> bool:
        return not files or any(file.is_relative_to(path) for file in files for path in paths)

    # One of the files of examples/pipelines has the name of another example. Mypy takes options before paths only.
    sources = ["--exclude", "^examples/pipelines/", "noxfile.py", "heron-core/src", *_relative("plugins/*/src")]
    others = ("examples", "bench", "chaos", "checks", "docs_site", "ground_truth", "verify")
    sources += [name for name in others if any((ROOT / name).glob("**/*.py"))]
    runs: list[list[str]] = []
    used: list[set[str]] = []
    for tree in ("examples/pipelines", *_relative("heron-core/tests/*"), *_relative("tests"), *_plugin_tests()):
        names = {_module(file) for file in (ROOT / tree).rglob("*.py")}
        if names and wanted([tree]):
            place = next((place for place, other in enumerate(used) if not other & names), len(runs))
            if place == len(runs):
                runs.append([])
                used.append(set())
            runs[place].append(tree)
            used[place] |= names
    return [sources, *runs] if wanted(sources) else runs


def _module(file: Path) -> str:
    packages = itertools.takewhile(lambda folder: (folder / "__init__.py").exists(), file.parents)
    return ".".join([file.stem, *(folder.name for folder in packages)][::-1])


def _check_generated(session: nox.Session) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stale = [
            str(source.relative_to(ROOT))
            for made in _generate(session, Path(folder))
            if not _same(made, source := PROTO_SOURCES / made.relative_to(folder))
        ]
    if stale:
        session.error(f"not what protoc makes of the .proto files: {', '.join(stale)}; run ./dev proto")


def _generate(session: nox.Session, target: Path) -> list[Path]:
    protos = sorted(path.relative_to(PROTO_SOURCES) for path in PROTO_SOURCES.rglob("*.proto"))
    if not protos:
        return []
    python = _environment(session, "proto", sys.executable, PROTOC)
    names = map(str, protos)
    out = (f"-I{PROTO_SOURCES}", f"--python_out={target}", f"--pyi_out={target}")
    session.run(python, "-m", "grpc_tools.protoc", *out, *names, silent=True)
    return [target / path.with_name(path.stem + end) for path in protos for end in ("_pb2.py", "_pb2.pyi")]


def _same(made: Path, committed: Path) -> bool:
    return committed.is_file() and filecmp.cmp(made, committed, shallow=False)


def _unit_elsewhere(session: nox.Session) -> None:
    """Run heron-core's tests on supported interpreters other than this one, at the same time."""
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    wanted = session.posargs or [version for version in PYTHONS if version != running]
    pythons, absent = [], []
    for version in wanted:
        if interpreter := _interpreter(version):
            packages = ("-c", "constraints.txt", "-b", "constraints.txt", *TEST_TOOLS, *_editables())
            pythons.append(_environment(session, f"py{version}", interpreter, packages))
        else:
            absent.append(version)
    if absent:
        message = f"tests not run on {', '.join(absent)}: no such interpreter here"
        (session.error if session.posargs else session.warn)(message)
    tests = ("-m", "pytest", "-q", "heron-core/tests", *_WITHOUT_SERVERS)
    _together(session, [[python, *tests] for python in pythons])


def _together(session: nox.Session, commands: list[list[str]]) -> None:
    """Run commands side by side; then show the output of each, in order, with its time and its processor time."""
    with contextlib.ExitStack() as stack:
        started = []
        for command in commands:
            output = stack.enter_context(tempfile.TemporaryFile())
            started.append((command, output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)))
        ended = _ended([process for _, _, process in started])
        failed = []
        for command, output, process in started:
            if process.returncode != 0:
                failed.append(command[0])
            output.seek(0)
            session.log(" ".join(command))
            sys.stdout.write(output.read().decode(errors="replace"))
            sys.stdout.flush()
            session.log(f"{ended[process.pid]}: {' '.join(command)}")
    if failed:
        session.error(f"failed on {', '.join(failed)}")


def _ended(processes: list[subprocess.Popen[bytes]]) -> dict[int, str]:
    """Wait for all processes; return for each how long it ran and what it used, with its children."""
    began_s = time.monotonic()
    running = {process.pid: process for process in processes}
    found = {}
    while running:
        pid, status, usage = os.wait4(-1, 0)
        if process := running.pop(pid, None):
            process.returncode = os.waitstatus_to_exitcode(status)
            used_s = usage.ru_utime + usage.ru_stime
            found[pid] = f"{time.monotonic() - began_s:.0f} s, {used_s:.0f} s of processor time"
    return found


def _interpreter(version: str) -> str | None:
    """Find a Python of this version that starts: on the PATH, else pyenv's (its shims may not start)."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for candidate in (shutil.which(f"python{version}"), *map(str, installed)):
        if candidate and _starts(candidate):
            return candidate
    return None


def _starts(interpreter: str) -> bool:
    return subprocess.run([interpreter, "--version"], capture_output=True, check=False).returncode == 0


def _wheel(session: nox.Session) -> None:
    """Build all wheels, install them where nothing else is, and use them as a user would."""
    dist = _built(session, CACHE / "dist", _projects())
    wheels = sorted(map(str, dist.glob("*.whl")))
    python = _installed(session, "wheel", dist, wheels)
    _uv(session, "pip", "check", "-q", "--python", python)
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):  # away from the sources
        _smoke(session, python)


def _alone(session: nox.Session, plugin: str) -> None:
    """Run a plugin's tests in an environment with only its wheel, what that requires, and the test kit."""
    tests = f"plugins/{plugin}/tests"
    if tests not in _plugin_tests():
        session.error(f"no plugin with tests is called {plugin!r}; known: see plugins/*/tests")
    # The servers of the kit, too: pytest refuses `not servers` where no plugin knows that mark.
    wanted = ["heron-testing", "heron-testing-servers", *_test_dependencies(f"plugins/{plugin}"), f"heron-{plugin}"]
    # In a folder of its own, because suites of several plugins run side by side.
    dist = _built(session, CACHE / "dist-alone" / plugin, _required_projects(wanted))
    (wheel,) = map(str, dist.glob(f"heron_{plugin.replace('-', '_')}-*.whl"))
    python = _installed(session, f"alone-{plugin}", dist, [*wanted[:-1], wheel])
    _python_pytest(session, python, tests, *_WITHOUT_SERVERS)


def _built(session: nox.Session, dist: Path, projects: list[str]) -> Path:
    """Build the wheels of some projects of this repository into an empty folder."""
    shutil.rmtree(dist, ignore_errors=True)
    # With the hatchling of this environment, which has the same pin, instead of one environment for each wheel.
    build = ("build", "-q", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(dist))
    for project in projects:
        _uv(session, *build, project)
    return dist


def _required_projects(requirements: list[str]) -> list[str]:
    """The projects of this repository that these requirements name, with what those and the named extras require."""
    ours = {_settings(project)["project"]["name"]: project for project in _projects()}
    found: set[str] = set()
    seen: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name, _, rest = re.sub(r"[^][A-Za-z0-9,-].*", "", requirement).partition("[")
        if name not in ours or requirement in seen:
            continue
        seen.add(requirement)
        found.add(ours[name])
        settings = _settings(ours[name])["project"]
        waiting += settings.get("dependencies", [])
        for extra in filter(None, rest.rstrip("]").split(",")):
            waiting += settings["optional-dependencies"][extra]
    return sorted(found)


def _settings(project: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / project / "pyproject.toml").read_text(encoding="utf-8"))


def _test_dependencies(project: str) -> list[str]:
    """What the tests of a distribution need beyond the test kit: its dependency group `test`."""
    return list(_settings(project).get("dependency-groups", {}).get("test", []))


def _installed(session: nox.Session, name: str, dist: Path, wanted: list[str]) -> str:
    """Return the Python of ``.nox/NAME`` with the wheels just built, and with what they require."""
    # The option hides the variable, by which `dev` hands on wheels.
    folders = [str(dist), *filter(None, os.environ.get("UV_FIND_LINKS", "").split(","))]
    links = [part for folder in folders for part in ("--find-links", folder)]
    ours = sorted({wheel.name.split("-")[0].replace("_", "-") for wheel in dist.glob("*.whl")})
    # uv keeps what --find-links had by name and version, which stay the same.
    again = [part for each in ours for part in ("--refresh-package", each, "--reinstall-package", each)]
    packages = ("-c", "constraints.txt", *links, *again, *TEST_TOOLS, *wanted)
    return _environment(session, name, sys.executable, packages, always=True)


def _smoke(session: nox.Session, python: str) -> None:
    heron = str(Path(python).with_name("heron"))
    modules = [path.parent.name for path in ROOT.glob("plugins/*/src/*/__init__.py")]
    check = "import heron, sys; assert heron.__file__.startswith(sys.prefix), heron.__file__"
    session.run(python, "-c", "; ".join([check, *(f"import {name}" for name in sorted(modules))]))
    session.run(heron, "--help", silent=True)
    session.run(heron, "plugins", "list")
    example = ROOT / "examples" / "word_count.py"
    if example.is_file():
        session.run(heron, "run", str(example), "--timeout", "60", "--", "--loops", "1")


def _environment(
    session: nox.Session, name: str, interpreter: str, packages: tuple[str, ...], *, always: bool = False
) -> str:
    """Return the Python of ``.nox/NAME``, made again when the interpreter or what it holds has changed.

    With `always`, the packages are installed again into an environment that is kept.
    """
    folder = CACHE / name
    python = folder / "bin" / "python"
    inputs = [ROOT / "constraints.txt", *(ROOT / project / "pyproject.toml" for project in _projects())]
    wanted = hashlib.sha256(repr((str(ROOT), interpreter, packages)).encode())
    for path in inputs:
        wanted.update(path.read_bytes())
    stamp = folder / "made-from"
    kept = python.exists() and stamp.is_file() and stamp.read_text() == wanted.hexdigest()
    if not kept:
        _uv(session, "venv", "-q", "--clear", "--python", interpreter, str(folder))
    if always or not kept:
        _uv(session, "pip", "install", "-q", "--python", str(python), *packages)
    stamp.write_text(wanted.hexdigest())
    return str(python)


# Long runs, and what needs servers, have sessions of their own.
_LONG = "not chaos and not soak"
_WITHOUT_SERVERS = ("-m", f"{_LONG} and not servers")

# Tested by ./dev e2e -- NAME, and so not again among all servers.
_BY_THEMSELVES = {"spark"}

_DOCS_TESTS = ("tests/test_docs_links.py", "tests/test_docs_site.py")


def _python_pytest(session: nox.Session, python: str, *arguments: str) -> None:
    session.run(python, "-m", "pytest", *arguments)


def _uv(session: nox.Session, *arguments: str) -> None:
    session.run(sys.executable, "-m", "uv", *arguments)


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _projects() -> list[str]:
    return ["heron-core", *(str(Path(path).parent) for path in _relative("plugins/*/pyproject.toml"))]


def _editables() -> list[str]:
    return [part for project in _projects() for part in ("-e", f"./{project}")]


def _contract_paths() -> list[str]:
    """Where tests of servers are."""
    return _plugin_tests() + _relative("tests/contract/test_*.py") + _relative("tests/e2e/*/test_on_*.py")


def _is_by_itself(path: str) -> bool:
    return not _BY_THEMSELVES.isdisjoint(_contract_words(path))


def _contract_words(path: str) -> set[str]:
    """What chooses plugins/statemgr-localfs/tests: statemgr, localfs, both; of a file in tests/contract each word."""
    if path.startswith("plugins/"):
        folder = Path(path).parent.name
        return {folder, *folder.split("-", 1)}
    return set(Path(path).stem.split("_")[1:])


def _plugin_tests() -> list[str]:
    return _relative("plugins/*/tests")


def _relative(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
