"""Results of suites are kept by content: a changed input makes a record void, and nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from verify.inputs import Group
from verify.keys import Key, KeyFinder
from verify.pins import needed_pins, read_pins
from verify.suites import SERVERS, Kind, needs_server, server_fixtures
from verify.versions import server_versions
from verify.workspace import Workspace

from heron_testing_servers import pytest_plugin

ROOT = Path(__file__).resolve().parents[1]

REQUIRED = {"boto3": ["botocore"], "pytest": ["pluggy"]}

TREE = {
    "constraints.txt": "boto3==1.0\nbotocore==1.1\npytest==9.0\npluggy==1.7\nkazoo==2.0\n",
    "pyproject.toml": (
        '[tool.pytest.ini_options]\npythonpath = ["tests", "tests/e2e"]\n[tool.ruff]\nline-length = 120\n'
    ),
    "conftest.py": "import heron.clock\n",
    "README.md": "# Heron\n",
    "heron-core/pyproject.toml": '[project]\nname = "heron-core"\nversion = "1"\n',
    "heron-core/src/heron/__init__.py": "",
    "heron-core/src/heron/errors.py": "",
    "heron-core/src/heron/clock.py": "",
    "heron-core/src/heron/late.py": "",
    "heron-core/src/heron/checked.py": "",
    "heron-core/src/heron/spi/__init__.py": "",
    "heron-core/src/heron/spi/uploader.py": "import heron.errors\n",
    "heron-core/src/heron/spi/schema.json": "{}",
    "heron-core/src/heron/executor/__init__.py": "",
    "heron-core/src/heron/executor/main.py": 'def command(role):\n    return f"heron.{role}.main"\n',
    "heron-core/src/heron/stmgr/__init__.py": "",
    "heron-core/src/heron/stmgr/main.py": "import heron.stmgr.router\n",
    "heron-core/src/heron/stmgr/router.py": "",
    "plugins/cli/pyproject.toml": (
        '[project]\nname = "heron-cli"\ndependencies = ["heron-core"]\n'
        '[project.scripts]\nheron = "heron_cli.main:main"\n'
    ),
    "plugins/cli/src/heron_cli/__init__.py": "",
    "plugins/cli/src/heron_cli/main.py": "",
    "plugins/bundle-local/pyproject.toml": (
        '[project]\nname = "heron-bundle-local"\ndependencies = ["heron-statemgr-localfs"]\n'
    ),
    "plugins/testing/pyproject.toml": (
        '[project]\nname = "heron-testing"\ndependencies = ["heron-core", "pytest"]\n'
        '[project.entry-points.pytest11]\nheron = "heron_testing.pytest_plugin"\n'
    ),
    "plugins/testing/src/heron_testing/__init__.py": "",
    "plugins/testing/src/heron_testing/pytest_plugin.py": "import heron.clock\n",
    "plugins/testing/src/heron_testing/uploader.py": "import heron.spi.uploader\n",
    "plugins/testing/src/heron_testing/statemgr.py": "",
    "plugins/statemgr-localfs/pyproject.toml": (
        '[project]\nname = "heron-statemgr-localfs"\n'
        '[project.entry-points."heron.statemgr"]\nlocalfs = "heron_localfs:M"\n'
    ),
    "plugins/statemgr-localfs/src/heron_localfs/__init__.py": "",
    "plugins/uploader-s3/pyproject.toml": (
        '[project]\nname = "heron-uploader-s3"\ndependencies = ["heron-core", "boto3>=1"]\n'
        '[project.entry-points."heron.uploader"]\ns3 = "heron_s3.driver:S3"\n'
    ),
    "plugins/uploader-s3/README.md": "# heron-uploader-s3\n",
    "plugins/uploader-s3/src/heron_s3/__init__.py": "",
    "plugins/uploader-s3/src/heron_s3/driver.py": (
        "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n\nimport boto3\n\n"
        "if TYPE_CHECKING:\n    from heron import checked\n\n\n"
        "def get():\n    from heron.late import x\n"
    ),
    "plugins/uploader-s3/tests/conftest.py": "",
    "plugins/uploader-s3/tests/test_s3.py": (
        "from conftest import x\nfrom heron_testing.uploader import Suite\n\n\nclass TestS3(Suite):\n"
        "    def test_it(self, s3):\n        pass\n"
    ),
    "plugins/statemgr-localfs/tests/test_localfs.py": "def test_it(tmp_path):\n    pass\n",
    "plugins/testing-servers/pyproject.toml": (
        '[project]\nname = "heron-testing-servers"\ndependencies = ["heron-testing"]\n'
        '[project.entry-points.pytest11]\nheron_servers = "heron_testing_servers.pytest_plugin"\n'
    ),
    f"{SERVERS}/__init__.py": "",
    f"{SERVERS}/pytest_plugin.py": (
        "import pytest\n\nfrom heron_testing_servers.serving import serving\n\n\n"
        "@pytest.fixture\ndef s3():\n    pass\n\n\n@pytest.fixture\ndef hdfs():\n    pass\n"
    ),
    f"{SERVERS}/serving.py": "",
    f"{SERVERS}/install.py": "",
    f"{SERVERS}/s3.py": (
        'from heron_testing_servers.install import installed\n\nFIXTURES = ("s3",)\n\n_VERSION = "v1.8.0"\n'
    ),
    f"{SERVERS}/hdfs.py": 'FIXTURES = ("hdfs",)\n',
    "tests/contract/test_policy.py": (
        'from pathlib import Path\nPAGE = Path(__file__).parents[2] / "plugins" / "uploader-s3" / "README.md"\n\n\n'
        "def test_policy(s3):\n    pass\n"
    ),
    "tests/e2e/conftest.py": "",
    "tests/e2e/flowing.py": "",
    "tests/e2e/security/test_quick.py": "import pytest\n\n\n@pytest.mark.guarantee\ndef test_it(tmp_path):\n    pass\n",
    "tests/e2e/faults/test_on_s3.py": 'from flowing import x\n\n\ndef test_on_s3(s3):\n    run("steady.py")\n',
    "tests/e2e/topologies/steady.py": "",
    "docs/index.md": "# Pages\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository with the layout of this one."""
    for path, text in TREE.items():
        write(tmp_path, path, text)
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def finder(root: Path) -> KeyFinder:
    return KeyFinder(Workspace(root), lambda name: REQUIRED.get(name, []))


def keys(root: Path) -> dict[str, Key]:
    found = finder(root)
    return {suite.name: found.key(suite) for suite in found.suites}


def changed(root: Path, path: str, text: str | None) -> dict[str, list[str]]:
    """Return the groups of each suite that change when a file gets this text, or is removed."""
    before = keys(root)
    if text is None:
        (root / path).unlink()
    else:
        write(root, path, text)
    after = keys(root)
    assert before.keys() == after.keys()
    changes = {
        name: [group for group, digest in after[name].groups.items() if digest != before[name].groups[group]]
        for name in after
    }
    assert {name for name in after if after[name].value != before[name].value} == {n for n, g in changes.items() if g}
    return {name: groups for name, groups in changes.items() if groups}


def test_suites_are_plugins_with_servers_and_files_of_server_tests(root: Path) -> None:
    """Each run tests the plugins that need no server."""
    found = {suite.name: (suite.kind, suite.path) for suite in finder(root).suites}
    assert found == {
        "contract-policy": (Kind.FILE, "tests/contract/test_policy.py"),
        "on-s3": (Kind.END_TO_END, "tests/e2e/faults/test_on_s3.py"),
        "uploader-s3": (Kind.PLUGIN, "plugins/uploader-s3/tests"),
    }


def test_tests_that_are_no_guarantee_are_suites(root: Path) -> None:
    """Of each end-to-end file that has one outside the long runs, and of each other file of `tests` that says so."""
    plain = "def test_more(tmp_path):\n    pass\n"
    write(root, "tests/e2e/security/test_quick.py", TREE["tests/e2e/security/test_quick.py"] + "\n\n" + plain)
    write(root, "tests/e2e/faults/test_long.py", f"import pytest\n\npytestmark = [pytest.mark.soak]\n\n\n{plain}")
    for path in ("tests/test_router_model.py", "heron-core/tests/stmgr/test_routes.py"):
        write(root, path, f"import pytest\n\n\n@pytest.mark.matrix\n{plain}")
    found = {suite.name: suite for suite in finder(root).suites}
    assert set(found) == {"contract-policy", "e2e-quick", "matrix-router-model", "on-s3", "uploader-s3"}
    chosen = "matrix and not soak and not chaos"
    assert found["e2e-quick"].command == ("python", "-m", "pytest", "-m", chosen, "tests/e2e/security/test_quick.py")


def test_sessions_are_suites_with_inputs_of_their_own(root: Path) -> None:
    """Wheels, interpreters and the site run by a command of `dev`; all depend on how the session is written."""
    write(root, "noxfile.py", 'TESTS = "heron.stmgr.router"\n')
    write(root, "docs_site/contents.yml", "- module heron.errors\n")
    found = {suite.name: suite.command for suite in finder(root).suites if suite.command[0] == "./dev"}
    assert found == {
        "python-3.12": ("./dev", "elsewhere", "--", "3.12"),
        "python-3.13": ("./dev", "elsewhere", "--", "3.13"),
        "site": ("./dev", "docs"),
        "wheel-statemgr-localfs": ("./dev", "wheel", "--", "statemgr-localfs"),
        "wheel-uploader-s3": ("./dev", "wheel", "--", "uploader-s3"),
        "wheels": ("./dev", "wheel"),
    }

    def sessions(path: str, text: str) -> dict[str, list[str]]:
        return {name: groups for name, groups in changed(root, path, text).items() if name in found}

    router = sessions("heron-core/src/heron/stmgr/router.py", "x = 1\n")
    assert router == {"python-3.12": ["core"], "python-3.13": ["core"], "wheels": ["core"]}
    assert sessions("heron-core/src/heron/errors.py", '"""Now with text."""\n') == {"site": ["core"]}
    assert sessions("docs/index.md", "# Page\n") == {"site": ["tests"]}
    path = "plugins/uploader-s3/src/heron_s3/driver.py"
    driver = sessions(path, TREE[path] + "x = 1\n")
    assert driver == {"wheel-uploader-s3": ["plugins"], "wheels": ["core"]}
    assert sessions("noxfile.py", "x = 1\n") == {name: ["core"] for name in found}


def test_a_new_plugin_changes_no_key(root: Path) -> None:
    """A plugin that no test names, and that nothing needs, cannot change a result."""
    before = keys(root)
    project = '[project]\nname = "heron-sink-x"\n[project.entry-points."heron.sink"]\nxx = "x:X"\n'
    write(root, "plugins/sink-x/pyproject.toml", project)
    write(root, "plugins/sink-x/src/heron_sink_x/__init__.py", "import heron.errors\n")
    write(root, "plugins/sink-x/tests/test_x.py", "import heron_sink_x\n")
    assert keys(root) == before


@pytest.mark.parametrize("path", ["heron-core/src/heron/errors.py", "plugins/uploader-s3/tests/test_s3.py"])
def test_a_comment_or_docstring_changes_no_key(root: Path, path: str) -> None:
    """Nobody runs servers again for a sentence."""
    write(root, path, TREE[path] + '\n\ndef get(x):\n    """Get."""\n    return x\n')
    assert changed(root, path, TREE[path] + '\n\ndef get(x):\n    """Get it."""\n    return x  # at once\n') == {}
    assert changed(root, path, TREE[path] + "\n\ndef get(x):\n    return (x, x)\n")["uploader-s3"]
    project = "plugins/uploader-s3/pyproject.toml"
    assert changed(root, project, "# The project\n" + TREE[project]) == {}


def test_text_counts_where_tests_read_it(root: Path) -> None:
    """Programs that tests start by name show line numbers, and some tests read docstrings of what they test."""
    assert changed(root, "tests/e2e/topologies/steady.py", "# A topology\n") == {"on-s3": ["tests"]}
    write(root, "plugins/uploader-s3/tests/test_doc.py", "from heron.errors import x\n\nassert x.__doc__\n")
    assert changed(root, "heron-core/src/heron/errors.py", "# Errors\n")["uploader-s3"] == ["core"]


def test_keys_do_not_depend_on_the_place(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A record that one clone commits is valid in another clone."""
    other = tmp_path_factory.mktemp("other")
    for path, text in reversed(TREE.items()):
        write(other, path, text)
    assert keys(root) == keys(other)


@pytest.mark.parametrize(
    "path",
    [
        "docs/index.md",
        "README.md",
        "tests/e2e/security/test_quick.py",
        f"{SERVERS}/hdfs.py",
        "plugins/testing/src/heron_testing/statemgr.py",
        "plugins/statemgr-localfs/tests/test_localfs.py",
        "verify/results/on-s3.json",
        "heron-core/tests/test_errors.py",
        "plugins/uploader-s3/src/heron_s3/__pycache__/driver.cpython-311.pyc",
        ".git/HEAD",
    ],
)
def test_a_file_that_no_suite_needs_changes_no_key(root: Path, path: str) -> None:
    """Otherwise each change would run every server."""
    assert changed(root, path, TREE.get(path, "") + "x = 1\n") == {}


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("plugins/uploader-s3/tests/test_s3.py", "tests"),
        ("plugins/uploader-s3/tests/conftest.py", "tests"),
        ("conftest.py", "shared"),
        ("plugins/uploader-s3/src/heron_s3/driver.py", "plugins"),
        ("plugins/uploader-s3/pyproject.toml", "plugins"),
        ("plugins/testing/src/heron_testing/uploader.py", "contract"),
        ("plugins/testing/src/heron_testing/pytest_plugin.py", "contract"),
        (f"{SERVERS}/s3.py", "servers"),
        (f"{SERVERS}/install.py", "servers"),
        ("heron-core/src/heron/errors.py", "core"),
        ("heron-core/src/heron/spi/__init__.py", "core"),
        ("heron-core/src/heron/late.py", "core"),
        ("heron-core/src/heron/clock.py", "core"),
        ("heron-core/pyproject.toml", "core"),
    ],
)
def test_code_in_an_input_changes_the_key(root: Path, path: str, group: str) -> None:
    """Inputs are tests, conftest, driver, contract and fixtures, also behind a function or another module."""
    more = "x = 1\n" if path.endswith(".py") else "[tool.x]\n"
    assert changed(root, path, TREE[path] + more)["uploader-s3"] == [group]


def test_data_beside_a_source_is_an_input(root: Path) -> None:
    """Templates and schemas are read by the modules next to them."""
    assert changed(root, "heron-core/src/heron/spi/schema.json", "[]")["uploader-s3"] == ["core"]


def test_a_driver_suite_does_not_depend_on_the_roles(root: Path) -> None:
    """A change in the stream manager cannot change how a driver stores a package."""
    assert changed(root, "heron-core/src/heron/stmgr/router.py", "x = 1\n") == {"on-s3": ["core"]}


def test_a_driver_that_starts_a_role_by_name_depends_on_all_roles(root: Path) -> None:
    """The executor builds the names of the other roles at run time."""
    driver = TREE["plugins/uploader-s3/src/heron_s3/driver.py"]
    write(root, "plugins/uploader-s3/src/heron_s3/driver.py", driver + 'MODULE = "heron.executor.main"\n')
    assert changed(root, "heron-core/src/heron/stmgr/router.py", "x = 1\n")["uploader-s3"] == ["core"]


def test_a_name_in_a_docstring_is_no_import(root: Path) -> None:
    """Otherwise a sentence about the stream manager would make it an input of a driver."""
    driver = TREE["plugins/uploader-s3/src/heron_s3/driver.py"]
    write(root, "plugins/uploader-s3/src/heron_s3/driver.py", '"""Not heron.stmgr.router."""\n' + driver)
    assert "uploader-s3" not in changed(root, "heron-core/src/heron/stmgr/router.py", "x = 1\n")


def test_an_import_for_type_checkers_is_none(root: Path) -> None:
    """It does not run."""
    assert changed(root, "heron-core/src/heron/checked.py", "x = 1\n") == {"on-s3": ["core"]}


def test_end_to_end_suites_depend_on_the_command_and_the_bundle(root: Path) -> None:
    """They run the heron command with the profile of the bundle."""
    assert changed(root, "plugins/cli/src/heron_cli/main.py", "x = 1\n") == {"on-s3": ["core"]}
    assert changed(root, "plugins/statemgr-localfs/src/heron_localfs/__init__.py", "x = 1\n") == {"on-s3": ["core"]}
    bundle = TREE["plugins/bundle-local/pyproject.toml"]
    assert changed(root, "plugins/bundle-local/pyproject.toml", f"{bundle}version = '2'\n") == {"on-s3": ["core"]}


def test_a_test_with_a_sandbox_runs_the_command(root: Path) -> None:
    """pytest's plugin loads the sandbox by name, for tests that ask for it."""
    write(root, "plugins/testing/src/heron_testing/sandbox.py", "import heron.late\n")
    assert changed(root, "plugins/testing/src/heron_testing/sandbox.py", "import heron.clock\n") == {}
    write(root, "plugins/uploader-s3/tests/test_s3.py", "def test_it(s3, sandbox):\n    pass\n")
    assert changed(root, "plugins/testing/src/heron_testing/sandbox.py", "x = 1\n")["uploader-s3"] == ["contract"]
    assert changed(root, "plugins/cli/src/heron_cli/main.py", "x = 1\n")["uploader-s3"] == ["core"]


def test_a_parameter_of_a_helper_asks_for_no_fixture(root: Path) -> None:
    """A folder that is called `sandbox` would bring the whole command into the inputs."""
    write(root, "plugins/testing/src/heron_testing/sandbox.py", "import heron.late\n")
    write(root, "plugins/uploader-s3/tests/test_s3.py", "def fetch(sandbox):\n    ...\n\n\ndef test_it(s3):\n    ...\n")
    assert changed(root, "plugins/testing/src/heron_testing/sandbox.py", "x = 1\n") == {}


def test_end_to_end_suites_depend_on_what_they_share_and_run(root: Path) -> None:
    """Inputs include the modules that they import and the topologies that they name."""
    assert changed(root, "tests/e2e/flowing.py", "x = 1\n") == {"on-s3": ["shared"]}
    assert changed(root, "tests/e2e/topologies/steady.py", "x = 1\n") == {"on-s3": ["tests"]}
    write(root, "tests/e2e/topologies/other.py", "x = 1\n")
    assert changed(root, "tests/e2e/topologies/other.py", "x = 2\n") == {}
    write(root, "tests/e2e/flowing.py", 'import_module("other")\n')
    assert changed(root, "tests/e2e/topologies/other.py", "x = 3\n") == {"on-s3": ["shared"]}
    hook = "tests/e2e/faults/held/site.py"  # beside the tests that put its folder on the path
    write(root, hook, "x = 1\n")
    assert changed(root, hook, "x = 2\n") == {}
    write(root, "tests/e2e/flowing.py", 'HOOK = HERE.with_name("held")\n')
    assert changed(root, hook, "x = 3\n") == {"on-s3": ["shared"]}
    assert changed(root, "plugins/uploader-s3/src/heron_s3/driver.py", "x = 1\n")["on-s3"] == ["plugins"]


@pytest.mark.parametrize("group", ["heron.sink", "heron.command"])
def test_a_driver_or_command_that_a_test_names_is_an_input(root: Path, group: str) -> None:
    """Profiles name drivers, tests run commands; both are loaded by entry point."""
    project = f'[project]\nname = "x"\n[project.entry-points."{group}"]\nxx = "x:X"\n'
    write(root, "plugins/sink-x/pyproject.toml", project)
    write(root, "plugins/sink-x/src/x/__init__.py", "")
    assert changed(root, "plugins/sink-x/src/x/__init__.py", "x = 1\n") == {}
    write(root, "tests/e2e/flowing.py", 'USE = "sink: {driver: xx}"\n')
    assert changed(root, "plugins/sink-x/src/x/__init__.py", "x = 2\n") == {"on-s3": ["core"]}


def test_a_file_that_a_test_names_is_an_input(root: Path) -> None:
    """A test of a page reads that page; pages of the same name elsewhere are not inputs."""
    assert changed(root, "plugins/uploader-s3/README.md", "# changed\n") == {"contract-policy": ["tests"]}


def test_a_path_from_the_root_names_one_file(root: Path) -> None:
    """Other files of that name are not inputs; the folder of a distribution means all of its sources."""
    test = "tests/contract/test_policy.py"
    write(root, test, 'PAGE = ROOT / "README.md"\n\n\ndef test_policy(s3):\n    pass\n')
    assert changed(root, "plugins/uploader-s3/README.md", "# changed\n") == {}
    assert changed(root, "README.md", "# changed\n") == {"contract-policy": ["tests"]}
    write(root, test, 'CORE = ROOT / "heron-core"\n\n\ndef test_policy(s3):\n    pass\n')
    assert changed(root, "heron-core/src/heron/stmgr/router.py", "x = 1\n")["contract-policy"] == ["core"]


def test_new_and_deleted_files_change_the_key(root: Path) -> None:
    """A new module may hide another, and a removed test did not run."""
    new = "plugins/uploader-s3/tests/test_more.py"
    assert changed(root, new, "def test_more(s3):\n    pass\n") == {"uploader-s3": ["tests"]}
    assert changed(root, new, None) == {"uploader-s3": ["tests"]}
    module = "plugins/uploader-s3/src/heron_s3/more.py"
    assert changed(root, module, "")["uploader-s3"] == ["plugins"]
    assert changed(root, module, None)["uploader-s3"] == ["plugins"]
    assert "uploader-s3" in changed(root, f"{SERVERS}/install.py", None)


def test_pins_of_needed_packages_change_the_key(root: Path) -> None:
    """Only pins of the driver, of its requirements and of the test tools count."""
    pins = TREE["constraints.txt"]
    assert set(changed(root, "constraints.txt", pins.replace("kazoo==2.0", "kazoo==2.1"))) == set()
    assert set(changed(root, "constraints.txt", "# A comment\n" + pins)) == set()
    assert changed(root, "constraints.txt", pins.replace("boto3==1.0", "boto3==1.2"))["uploader-s3"] == ["libraries"]
    assert changed(root, "constraints.txt", pins.replace("core==1.1", "core==1.2"))["uploader-s3"] == ["libraries"]
    everywhere = {name: ["libraries"] for name in ("contract-policy", "on-s3", "uploader-s3")}
    assert changed(root, "constraints.txt", pins.replace("pluggy==1.7", "pluggy==1.8")) == everywhere


def test_settings_of_pytest_change_the_key_and_settings_of_other_tools_do_not(root: Path) -> None:
    """A warning that becomes an error changes results; a longer line does not."""
    settings = TREE["pyproject.toml"]
    assert changed(root, "pyproject.toml", settings.replace("120", "100")) == {}
    assert changed(root, "pyproject.toml", settings.replace("[tool.ruff]", 'markers = ["x: y"]\n[tool.ruff]')) == {}
    with_warnings = settings.replace("[tool.ruff]", 'filterwarnings = ["error"]\n[tool.ruff]')
    assert changed(root, "pyproject.toml", with_warnings)["uploader-s3"] == ["shared"]


def test_a_fixture_asked_for_by_a_value_is_an_input(root: Path) -> None:
    """A parametrized test may ask for each of the servers that it names."""
    text = 'import pytest\n\n\n@pytest.mark.parametrize("name", ["hdfs"])\ndef test_it(s3, request, name):\n'
    write(root, "plugins/uploader-s3/tests/test_s3.py", text + "    request.getfixturevalue(name)\n")
    assert changed(root, f"{SERVERS}/hdfs.py", "x = 1\n") == {"uploader-s3": ["servers"]}


def test_pins_follow_requirements_and_spellings() -> None:
    """The name of a package has several spellings."""
    pins = read_pins("# Comment\nA_b==1\n\nc==2 # why\npytest==9\n")
    found = needed_pins({"a.B"}, pins, lambda name: ["C"] if name == "a-b" else [])
    assert found == {"a-b": "1", "c": "2", "pytest": "9"}


def test_the_record_names_the_versions_of_servers() -> None:
    """The pins in the modules of servers; a module may pin more than one."""
    texts = [(f"{SERVERS}/s3.py", '_VERSION = "v1"\n'), (f"{SERVERS}/hdfs.py", 'HADOOP_VERSION = "3"\nX = "4"\n')]
    assert server_versions(texts) == {"s3": "v1", "hadoop": "3"}


@pytest.fixture(scope="module")
def here() -> KeyFinder:
    """The suites of this repository."""
    return KeyFinder(Workspace(ROOT), cache=ROOT / ".nox" / "verify")


@pytest.mark.matrix  # the files of this repository take long
def test_every_test_of_this_repository_that_needs_a_server_is_in_a_suite(here: KeyFinder) -> None:
    """pytest gives a test the mark by the name of a fixture, and a test outside all suites would never run."""
    fixtures = server_fixtures(here.workspace, here.graph)
    tests = [path for path in here.workspace.files if re.search(r"/tests/(.*/)?test_\w+\.py$", f"/{path}")]
    needing = {path for path in tests if needs_server(here.graph, path, fixtures)}
    covered = tuple(f"{suite.path}/" if suite.kind is Kind.PLUGIN else suite.path for suite in here.suites)
    assert {path for path in needing if not path.startswith(covered)} == set()
    assert needing


@pytest.mark.matrix
def test_modules_of_servers_list_the_fixtures_of_the_pytest_plugin(here: KeyFinder) -> None:
    """pytest marks tests by the fixtures of the plugin; suites are found by the lists of the modules."""
    assert sorted(server_fixtures(here.workspace, here.graph)) == sorted(pytest_plugin.__all__)


@pytest.mark.matrix
def test_driver_suites_of_this_repository_do_not_reach_the_roles(here: KeyFinder) -> None:
    """Otherwise a change of the core would run every server.

    Schedulers start roles, and components of other languages run in the simulator, which has parts of an instance.
    """
    for suite in here.suites:
        if suite.kind is Kind.PLUGIN and not suite.name.startswith(("scheduler-", "runtime-")):
            core = here.key(suite).files[Group.CORE.value]
            roles = [path for path in core if re.search(r"/(stmgr|tmanager|executor|instance)/", path)]
            assert [path for path in roles if not path.endswith("__init__.py")] == [], suite.name
