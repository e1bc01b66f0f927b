"""Topologies of Apache Storm from their jar: those of storm-starter 1.2.2 unchanged, and some with exact results."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.absence import not_here
from heron_testing_servers.install import ServerNotInstalledError, installed, maven_jars
from storm_jars import COUNT, OWN, SOURCES, WAIT_S, Libraries, Row, Storm, StormServers, received, rows_in

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

pytestmark = pytest.mark.servers

STORM = "2.8.3"
STARTER = "1.2.2"
TOP_WORDS = {"nathan", "mike", "jackson", "golda", "bertels"}  # what Storm's TestWordSpout emits
ROWS = {"words": COUNT, "direct": COUNT, "custom": 5 * COUNT, "windows": COUNT // 10, "stateful": COUNT}
"""Topologies that run in Storm's own LocalCluster too, and how many rows their sinks receive."""


@pytest.fixture(scope="module")
def libraries() -> Libraries:
    """The jars from Maven."""
    try:
        storm = installed(f"storm-client-{STORM}", maven_jars(f"org.apache.storm:storm-client:{STORM}"))
        starter = installed(f"storm-starter-{STARTER}", _copy_starter)
    except ServerNotInstalledError as error:
        not_here(f"Storm's jars cannot be installed: {error}")
    return Libraries(storm / "lib", starter / "lib" / f"storm-starter-{STARTER}.jar")


def _copy_starter(folder: Path) -> None:
    """Copy the jar alone: it brings what it needs."""
    artifact = f"-Dartifact=org.apache.storm:storm-starter:{STARTER}"
    command = ["mvn", "-q", "-B", "dependency:copy", artifact, "-DoutputDirectory=lib"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"`{' '.join(command)}` failed: {error}"
        raise ServerNotInstalledError(msg) from error


@pytest.fixture(scope="module")
def own_jar(libraries: Libraries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of the topologies of these tests."""
    folder = tmp_path_factory.mktemp("own")
    sources = SOURCES
    classes = folder / "classes"
    class_path = f"{libraries.storm}/*:{libraries.starter}"
    command = ["javac", "-d", str(classes), "-cp", class_path, str(sources / "StormTopologies.java")]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(folder / "own.jar", "w") as jar, zipfile.ZipFile(libraries.starter) as starter:
        for path in (*classes.rglob("*.class"), sources / "resources" / "shout.py"):
            jar.write(path, path.relative_to(sources if path.suffix == ".py" else classes))
        for name in starter.namelist():
            if "starter/bolt/SingleJoinBolt" in name:
                jar.writestr(name, starter.read(name))
    return folder / "own.jar"


@pytest.fixture(scope="module")
def servers(libraries: Libraries, own_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> StormServers:
    """Storm's own servers."""
    try:
        server = installed(f"storm-server-{STORM}", maven_jars(f"org.apache.storm:storm-server:{STORM}"))
    except ServerNotInstalledError as error:
        not_here(f"Storm's servers cannot be installed: {error}")
    return StormServers(server / "lib", libraries, own_jar, tmp_path_factory.mktemp("servers"))


@pytest.fixture(scope="module")
def in_storm(servers: StormServers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the topologies of `ROWS` have written in a LocalCluster of Storm: rows in a folder for each, ``answers``."""
    out = tmp_path_factory.mktemp("in_storm")
    for kind in ROWS:
        (out / kind).mkdir()

    def complete() -> bool:
        has_rows = all(len(rows_in(out / kind)) >= count for kind, count in ROWS.items())
        return runs() and has_rows and (out / "answers").exists()

    with servers.running("cluster", str(out / "answers"), str(out), str(COUNT), *ROWS) as runs:
        wait_until(complete, WAIT_S, "the rows of Storm's LocalCluster")
    return out


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where classes are kept that a first use compiles."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def storm(sandbox: Sandbox, libraries: Libraries, own_jar: Path, cache: Path) -> Storm:
    """Jars in a sandbox."""
    return Storm(sandbox, libraries, own_jar, cache)


def all_acked(storm: Storm, run: HeronRun) -> None:
    """Wait until the spout has emitted all numbers and each is acked."""
    run.until(lambda: storm.numbers().get("emitted", 0) >= COUNT, "every ack", WAIT_S)
    assert storm.numbers()["fails"] == 0


def texts(count: int = COUNT) -> Counter[str]:
    """The texts of the numbers."""
    return Counter(f"text{number % 7}" for number in range(count))


@pytest.mark.parametrize("ackers", ["0", "1"])
def test_every_number_arrives_once(storm: Storm, ackers: str, in_storm: Path) -> None:
    """A basic bolt and a fields grouping, at most once and at least once."""
    run = storm.start("words", f"topology.acker.executors={ackers}")
    run.until(lambda: len(storm.rows("sink")) >= COUNT, "every number", WAIT_S)
    if ackers == "1":
        all_acked(storm, run)
    storm.end(run)
    rows = storm.rows("sink")
    assert sorted(int(each.values[0]) for each in rows) == [2 * number for number in range(COUNT)]
    tasks = {each.values[1]: each.place for each in rows}
    assert all(tasks[each.values[1]] == each.place for each in rows)
    assert received(storm.out) == received(in_storm / "words")


def test_direct_tuples_reach_the_chosen_task(storm: Storm, in_storm: Path) -> None:
    """The bolt has chosen the task out of those of its context."""
    run = storm.start("direct")
    all_acked(storm, run)
    storm.end(run)
    rows = storm.rows("sink")
    assert sorted(int(each.values[0]) for each in rows) == [*range(COUNT)]
    assert all(each.place == int(each.values[0]) % 3 for each in rows)
    assert Counter(rows) == Counter(rows_in(in_storm / "direct"))


def test_custom_groupings_and_others_share_a_stream(storm: Storm, in_storm: Path) -> None:
    """A class of Java chooses tasks; the other consumers of the stream get each tuple by their own grouping."""
    run = storm.start("custom")
    all_acked(storm, run)
    storm.end(run)
    by_sink: dict[str, list[Row]] = defaultdict(list)
    for each in storm.rows():
        by_sink[each.sink].append(each)
    numbers = {name: sorted(int(each.values[0]) for each in rows) for name, rows in by_sink.items()}
    once, twice = [*range(COUNT)], sorted([*range(COUNT)] * 2)
    assert numbers == {
        "modulo": once,
        "everyone": twice,
        "partial": once,
        "first": once,
    }
    assert all(each.place == int(each.values[0]) % 3 for each in by_sink["modulo"])
    assert {each.place for each in by_sink["first"]} == {0}
    tasks = defaultdict(set)
    for each in by_sink["partial"]:
        tasks[each.values[1]].add(each.place)
    assert max(map(len, tasks.values())) <= 2
    assert received(storm.out) == received(in_storm / "custom")


def test_ticks_come_in_the_period_of_the_component(storm: Storm) -> None:
    """The component's own configuration asks for them."""
    run = storm.start("ticks")

    def counted() -> bool:
        rows = storm.rows("sink")
        return len(rows) >= 3 and sum(int(each.values[1]) for each in rows) == COUNT

    run.until(counted, "ticks", WAIT_S)
    storm.end(run)
    ticks = [int(each.values[0]) for each in storm.rows("sink")]
    assert ticks == [*range(1, len(ticks) + 1)]


def test_windows_have_the_sums_of_storm(storm: Storm, in_storm: Path) -> None:
    """Storm's own executor makes the windows, and acks what leaves them."""
    run = storm.start("windows")
    run.until(lambda: len(storm.rows("sink")) == COUNT // 10, "every window", WAIT_S)
    storm.end(run)
    sums = [int(each.values[0]) for each in storm.rows("sink")]
    assert sums == [sum(range(begin, begin + 10)) for begin in range(0, COUNT, 10)]
    assert received(storm.out) == received(in_storm / "windows")


def test_a_stateful_bolt_counts_in_its_state(storm: Storm, in_storm: Path) -> None:
    """Storm's checkpoint spout and its streams belong to the topology."""
    run = storm.start("stateful", "topology.state.checkpoint.interval.ms=500")
    all_acked(storm, run)
    run.until(lambda: len(storm.rows("sink")) == COUNT, "every count", WAIT_S)
    storm.end(run)
    counts: dict[str, list[int]] = defaultdict(list)
    for each in storm.rows("sink"):
        counts[each.values[0]].append(int(each.values[1]))
    assert {text: sorted(found) for text, found in counts.items()} == {
        text: [*range(1, count + 1)] for text, count in texts().items()
    }
    assert received(storm.out) == received(in_storm / "stateful")


def test_programs_in_other_languages_run_from_the_resources_of_the_jar(storm: Storm) -> None:
    """As a component of Thrift without a JVM, and by Storm's own class in one."""
    run = storm.start("shell")
    all_acked(storm, run)
    run.until(lambda: len(storm.rows("sink")) == 2 * COUNT, "every text", WAIT_S)
    storm.end(run)
    found = Counter((each.source, each.values) for each in storm.rows("sink"))
    assert found == Counter(
        (source, (str(number), f"TEXT{number % 7}")) for number in range(COUNT) for source in ("shout", "java_shout")
    )


def test_a_join_of_the_starter_has_every_pair(storm: Storm) -> None:
    """The bolt of SingleJoinExample, whose own main runs only in a LocalCluster; it keeps ids until both sides came."""
    run = storm.start("join")
    run.until(lambda: len(storm.rows("sink")) == COUNT, "every pair", WAIT_S)
    storm.end(run)
    found = Counter(each.values for each in storm.rows("sink"))
    assert found == Counter(("male" if number % 2 == 0 else "female", str(number + 20)) for number in range(COUNT))


def test_killed_jvms_lose_no_number(storm: Storm) -> None:
    """What a JVM has when it dies fails, and the spout emits it again; the task goes on with another JVM."""
    (storm.out / "hold").touch()
    run = storm.start("words", "topology.message.timeout.secs=20")
    for component in ("double", "sink"):
        run.grows(lambda: len(storm.rows("sink")), "numbers", by=50, timeout_s=WAIT_S)
        killed = storm.children(run, component)[0]
        killed.kill()
        run.until(lambda: killed not in storm.children(run, component), "its end")  # noqa: B023  # at once
    run.grows(lambda: len(storm.rows("sink")), "numbers", by=50, timeout_s=WAIT_S)
    (storm.out / "hold").unlink()
    run.until(storm.numbers, "every ack", WAIT_S)
    storm.end(run)
    emitted = storm.numbers()["emitted"]
    assert {int(each.values[0]) for each in storm.rows("sink")} == {2 * number for number in range(emitted)}
    assert re.search("was killed by SIGKILL.*; its tuples fail", storm.sandbox.log_text("double-*.out*"), re.DOTALL)


def test_more_tasks_get_their_own_jvms_while_it_runs(storm: Storm) -> None:
    """An update starts JVMs, and no number is lost."""
    (storm.out / "hold").touch()
    run = storm.start("words")
    run.grows(lambda: len(storm.rows("sink")), "numbers", by=50, timeout_s=WAIT_S)
    storm.sandbox.update("exact", "double:3")
    run.until(lambda: len(storm.children(run, "double")) == 3, "three JVMs", WAIT_S)
    run.grows(lambda: len(storm.rows("sink")), "numbers", by=50, timeout_s=WAIT_S)
    (storm.out / "hold").unlink()
    run.until(storm.numbers, "every ack", WAIT_S)
    storm.end(run)
    emitted = storm.numbers()["emitted"]
    assert {int(each.values[0]) for each in storm.rows("sink")} == {2 * number for number in range(emitted)}


def test_running_jvms_follow_an_update_of_the_tasks(storm: Storm) -> None:
    """A custom grouping, and a bolt that asks its context, send to the tasks that there are; no number is lost."""
    (storm.out / "hold").touch()
    run = storm.start("following")

    def places(sink: str) -> set[int]:
        """The tasks that have got the last 30 numbers of all."""
        rows = sorted(storm.rows(sink), key=lambda each: int(each.values[0]))
        return {each.place for each in rows[-30:]}

    for tasks in (3, 1):
        run.grows(lambda: len(storm.rows("sink")), "numbers", by=50, timeout_s=WAIT_S)
        emitters = storm.children(run, "numbers") + storm.children(run, "router")
        storm.sandbox.update("exact", f"sink:{tasks}", f"modulo:{tasks}")
        for sink in ("sink", "modulo"):
            run.until(lambda: places(sink) == set(range(tasks)), f"{tasks} tasks of {sink}", WAIT_S)  # noqa: B023  # at once
        assert emitters == storm.children(run, "numbers") + storm.children(run, "router")
    (storm.out / "hold").unlink()
    run.until(storm.numbers, "every ack", WAIT_S)
    storm.end(run)
    numbers = storm.numbers()
    assert numbers["fails"] == 0
    for sink in ("sink", "modulo"):
        assert sorted(int(each.values[0]) for each in storm.rows(sink)) == [*range(numbers["emitted"])]


def test_a_submitted_jar_runs_until_it_is_killed(storm: Storm) -> None:
    """The command returns, prints what `main` prints, and takes ``-c`` behind the arguments, as `storm jar`."""
    sandbox = storm.sandbox
    sandbox.submits = True
    arguments = ("words", "exact", str(storm.out), str(COUNT), "-c", "topology.max.task.parallelism=1")
    done = sandbox.heron("submit", "local", str(storm.own), OWN, *arguments)
    assert done.stdout.startswith("exact submitted as exact-")
    printed = [each for each in done.stderr.splitlines() if "compiling Java classes" not in each]
    assert printed == ["main has 4 arguments"]

    def executed() -> dict[str, int]:
        return {each["name"]: each["executed"] for each in sandbox.status("exact")["components"]}

    wait_until(lambda: executed() == {"numbers": 0, "double": COUNT, "sink": COUNT}, WAIT_S, "every number")
    wait_until(lambda: storm.numbers().get("emitted") == COUNT, WAIT_S, "every ack")
    assert all(each["parallelism"] == 1 for each in sandbox.status("exact")["components"])
    sandbox.output_of("kill", "exact")
    assert not sandbox.is_known("exact")
    assert sorted(int(each.values[0]) for each in storm.rows()) == [2 * number for number in range(COUNT)]


def test_reach_of_the_starter_answers_distributed_calls(storm: Storm, servers: StormServers, in_storm: Path) -> None:
    """Its main submits a spout that takes calls from Storm's own server; the answers are those of the LocalCluster."""
    port, answers = free_port(), storm.out / "answers"
    with servers.running("drpc", str(answers), str(port)) as runs:
        keys = ("-c", 'drpc.servers=["127.0.0.1"]', "-c", f"drpc.invocations.port={port}")
        run = storm.start_starter("ReachTopology", "reach", *keys, tasks=2)
        run.until(lambda: runs() and answers.exists(), "every answer", WAIT_S)
        storm.end(run)
    found = [line.split("\t") for line in answers.read_text(encoding="utf-8").splitlines()]
    assert [answer for _, answer, _ in found] == [right for _, _, right in found] == ["16", "14", "0"]
    assert answers.read_text(encoding="utf-8") == (in_storm / "answers").read_text(encoding="utf-8")


def test_word_count_of_the_starter_counts_each_word(storm: Storm) -> None:
    """Its split bolt is a Python program in the jar."""
    run = storm.start_starter("WordCountTopology", "words")
    run.until(lambda: len(storm.first("count")) >= 100, "a hundred counts", WAIT_S)
    storm.end(run)
    words = [word for sentence in storm.first("spout") for word in str(sentence).split()]
    assert storm.first("split") == words[: len(storm.first("split"))]
    counts = [tuple(values) for task in storm.emitted("count").values() for values in task]
    seen = Counter[object]()
    expected = []
    for word in words[: len(counts)]:
        seen[word] += 1
        expected.append((word, seen[word]))
    assert counts == expected


def test_exclamation_of_the_starter_adds_its_marks(storm: Storm) -> None:
    """Two tasks of each component: a word is never lost or doubled."""
    run = storm.start_starter("ExclamationTopology", "marks", tasks=2)
    run.until(lambda: len(storm.first("exclaim2")) >= 100, "a hundred words", WAIT_S)
    storm.end(run)
    words = Counter(storm.first("word"))
    assert set(words) <= {"nathan", "mike", "jackson", "golda", "bertels"}
    for component, marks in (("exclaim1", "!!!"), ("exclaim2", "!!!!!!")):
        found = Counter(storm.first(component))
        assert found <= Counter({f"{word}{marks}": count for word, count in words.items()})
        assert found.total() >= 100


def test_sliding_windows_of_the_starter_have_their_sums(storm: Storm) -> None:
    """Windows of 30 numbers, by 10, and the average of three sums."""
    run = storm.start_starter("SlidingWindowTopology", "sums")
    run.until(lambda: len(storm.first("tumblingavg")) >= 2, "two averages", WAIT_S)
    storm.end(run)
    numbers = [int(str(each)) for each in storm.first("integer")]
    sums = storm.first("slidingsum")
    assert len(sums) >= 6
    ends = range(10, 10 * len(sums) + 1, 10)
    assert sums == [sum(numbers[max(0, end - 30) : end]) for end in ends]
    averages = storm.first("tumblingavg")
    assert averages == [sum(sums[3 * each : 3 * each + 3]) // 3 for each in range(len(averages))]  # type: ignore[arg-type]


def test_rolling_top_words_of_the_starter_ranks_what_was_emitted(storm: Storm) -> None:
    """Counts of the last nine seconds, by ticks; the rankings are objects of Java, which travel between the JVMs."""
    run = storm.start_starter("RollingTopWords", "top", "remote")

    def ranked() -> set[str]:  # in the bytes of an object, which may mark the last letter of a text
        rankings = storm.first("finalRanker")
        return {word for word in TOP_WORDS if rankings and word[:-1] in str(rankings[-1])}

    run.until(lambda: ranked() == TOP_WORDS, "a ranking of all words", WAIT_S)
    storm.end(run)
    words = Counter(storm.first("wordGenerator"))
    rolling = [values for task in storm.emitted("counter").values() for values in task]
    assert rolling
    assert all(0 <= int(str(count)) <= words[word] for word, count, _ in rolling)
    assert sum(int(str(count)) for _, count, _ in rolling) > 0


def test_a_main_that_cannot_be_used_is_refused_with_its_reason(storm: Storm) -> None:
    """Nothing was started."""

    def refused(kind: str, target: str = "own.jar") -> str:
        jar = storm.own.with_name(target.partition(":")[0])
        words = (f"{jar}{target.removeprefix('own.jar')}", "--", OWN, kind, "exact", str(storm.out), "1")
        return storm.sandbox.output_of("plan", *words, code=2)

    assert "main ended its JVM with exit code 3 before it submitted a topology" in refused("exit")
    assert "main returned without StormSubmitter.submitTopology; give the arguments" in refused("nothing")
    thrown = refused("throws")
    assert "main raised java.lang.IllegalStateException: main has its reason; correct it, or give" in thrown
    assert "\n    at heron.tests.StormTopologies.main(StormTopologies.java:" in thrown
    assert "main submits 2 topologies, 'exact', 'exact-again'; choose one: own.jar:exact" in refused("twice")
    assert "main submits no topology 'exakt' (nearest: 'exact')" in refused("twice", "own.jar:exakt")
    chosen = storm.sandbox.output_of("plan", f"{storm.own}:exact-again", "--", OWN, "twice", "exact", "x", "1")
    assert chosen.startswith("exact-again\n")
    exits = storm.sandbox.output_of("plan", str(storm.own), "--", OWN, "exits", "exact", "x", "1")
    assert exits.startswith("exact\n")
    starter = str(storm.libraries.starter)
    join = "org.apache.storm.starter.SingleJoinExample"
    assert "main starts a LocalCluster" in storm.sandbox.output_of("plan", starter, "--", join, code=2)
