"""Components in real JVMs: values, acks, ticks, windows, errors of authors, and JVMs that die or hang."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from jvm_topologies import SOURCES, FailOnce, Keep, Numbers, class_path, kept, one_bolt, rows_of, source, word_count
from xxhash import xxh3_64_hexdigest

import heron_runtime_jvm
from heron.api import Grouping, TopologyBuilder
from heron.clock import SystemClock
from heron.errors import TopologyFailedError
from heron.planner.key_encoding import encode_key
from heron.planner.key_group import key_group
from heron_runtime_jvm import JvmBolt, JvmSpout, compiled_classes, expanded_class_path, find_java
from heron_simulator import Simulation
from heron_testing_servers.storm import StormClient

pytestmark = pytest.mark.leaks_nothing

KEYS = Path(__file__).parents[3] / "heron-core/tests/planner/golden/key_groups.json"
COUNT = 60
AT_MOST, AT_LEAST = "ATMOST_ONCE", "ATLEAST_ONCE"


@pytest.fixture(scope="module")
def path(storm_client: StormClient) -> list[str]:
    """The class path of the tests' components."""
    return class_path(storm_client.jars, "Words.java", "Probes.java")


def run(builder: TopologyBuilder) -> tuple[list[tuple[object, ...]], Numbers]:
    """What arrives at the end, and the spout."""
    with Simulation(builder, clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        return kept(simulation), source(simulation)


def probe(
    name: str,
    path: list[str],
    values: list[object],
    outputs: list[str],
    mode: str = AT_LEAST,
    config: Mapping[str, object] | None = None,
) -> tuple[list[tuple[object, ...]], Numbers]:
    """What a bolt of `Probes` makes of the values."""
    return run(
        one_bolt(mode, values, config, java_class=f"demo.Probes${name}", class_path=path, outputs=outputs, timeout_s=60)
    )


@pytest.mark.parametrize("mode", [AT_MOST, AT_LEAST])
def test_a_word_count_in_java_is_exact(mode: str, path: list[str]) -> None:
    """A Java spout, a basic bolt, a rich bolt with a fields grouping, and a Python bolt."""
    lines = 500
    with Simulation(word_count(path, lines, mode), clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        rows = kept(simulation)
    words = Counter(word for number in range(lines) for word in f"the word w{number % 100} of the line".split())
    assert Counter(word for word, _ in rows) == words
    counts: dict[object, set[object]] = {}
    for word, count in rows:
        counts.setdefault(word, set()).add(count)
    assert counts == {word: set(range(1, total + 1)) for word, total in words.items()}  # one task has counted each


def golden(name: str, storm_client: StormClient, file: Path) -> str:
    """The last line that a class of the tests prints, which compares the Java side with a file."""
    runtime = sorted(Path(heron_runtime_jvm.__file__).parent.glob("java/heron/jvm/*.java"))
    jars = expanded_class_path([f"{storm_client.jars}/*"], SOURCES)
    classes = compiled_classes("golden", [*runtime, *sorted(SOURCES.glob("Golden*.java"))], jars, find_java())
    command = ["java", "-cp", f"{classes}:{storm_client.jars}/*", f"heron.jvm.{name}", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_the_java_side_reads_and_writes_the_golden_frames(storm_client: StormClient) -> None:
    """`test_frames.py` compares the Python side with the same file."""
    assert golden("GoldenFrames", storm_client, SOURCES.parent / "golden" / "child_frames.txt") == "checked 28"


def test_the_java_side_has_the_key_groups_of_the_golden_file(storm_client: StormClient, tmp_path: Path) -> None:
    """Code in a JVM and the instances in Python agree which task owns a key; the core compares Python with the file."""
    text = KEYS.read_text(encoding="utf-8")
    vectors = [
        (each["key"], bytes.fromhex(each["encoding"]), each["xxh3_64"], each["group_of_1024"])
        for each in json.loads(text)["vectors"]
    ]
    for size in (*range(260), 1015, 1016, 1079, 1080, 4000):  # XXH3 has a way for each size
        key = bytes(number * 7 % 256 for number in range(size))
        encoding = encode_key((key,))
        vectors.append(([{"bytes": key.hex()}], encoding, xxh3_64_hexdigest(encoding), key_group((key,), 1024)))
    (tmp_path / "vectors").write_bytes(msgspec.msgpack.encode(vectors))
    assert golden("GoldenKeys", storm_client, tmp_path / "vectors") == f"checked {len(vectors)}"


VALUES: dict[str, list[object]] = {
    "null": [None],
    "Boolean": [True, False],
    "Integer": [0, -1, 31, 127, 128, 255, 256, 32767, -32769, 65535, 65536, 2**31 - 1, -(2**31)],
    "Long": [2**31, -(2**31) - 1, 2**32, 2**63 - 1, -(2**63)],
    "Double": [0.0, -1.5, 1e300, float("inf")],
    "String": ["", "word", "Zürich €", "𝄞", "\0", "x" * 40, "ü" * 100, "x" * 70000],
    "byte[]": [b"", b"\x00\xff", bytes(70000)],
    "ArrayList": [[], [1, "two", [3.0, None]], list(range(20))],
    "LinkedHashMap": [{}, {"a": 1, "b": {"c": [b"d"]}}, {1: True, None: 2.5}],
}


def test_values_travel_to_java_and_back(path: list[str]) -> None:
    """Each has one type in Java, and comes back as it was."""
    values = [value for each in VALUES.values() for value in each]
    kinds = [kind for kind, each in VALUES.items() for _ in each]
    rows, numbers = probe("Echo", path, values, ["number", "value", "kind"])
    assert sorted(rows) == [(n, value, kind) for n, (value, kind) in enumerate(zip(values, kinds, strict=True))]
    assert not numbers.failed


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**63, "the value [1] of the tuple is an integer of more than 64 bits, which Java cannot receive"),
        ({"a": [1, {2}]}, "the value [1]['a'][1] of the tuple is a set, which Java cannot receive"),
        ("a\ud800", "the value [1] of the tuple cannot be encoded ("),
        ({(1,): 2}, "the value [1] of the tuple has a key that is a tuple"),
    ],
)
def test_a_value_that_java_cannot_receive_fails_its_tuple(
    value: object, reason: str, path: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its neighbours arrive."""
    rows, numbers = probe("Echo", path, [1, value, 3], ["number", "value", "kind"])
    assert sorted(rows) == [(0, 1, "Integer"), (2, 3, "Integer")]
    assert numbers.failed == {1: 3}
    assert reason in capsys.readouterr().err


def test_java_objects_travel_between_jvms_and_keep_their_types(path: list[str]) -> None:
    """Integer and Long differ, and what is no plain data is carried by Kryo."""
    count = 22
    builder = TopologyBuilder("typed")
    builder.set_config({"topology.reliability.mode": AT_LEAST})
    numbers = builder.add_spout("numbers", Numbers, par=1, config=rows_of([None] * count))
    typed = JvmBolt.spec(
        "typed", [numbers], java_class="demo.Probes$Typed", class_path=path, outputs=["number", "value"]
    )
    same = JvmBolt.spec("same", [typed], java_class="demo.Probes$Same", class_path=path, outputs=["number", "same"])
    builder.add_spec(typed, same)
    builder.add_bolt("keep", Keep, par=1, inputs=[same])
    rows, _ = run(builder)
    assert sorted(rows) == [(number, True) for number in range(count)]


def test_towards_python_only_plain_data_travels(path: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The error has stream, field and class; numbers of other sizes become int and float."""
    rows, numbers = probe("Typed", path, [None] * 22, ["number", "value"])
    found = {row[0]: row[1] for row in rows}
    assert found == {
        **dict.fromkeys([0, 1, 3, 4], 1),
        2: 2**40,
        5: 1.5,
        6: 1.5,
        7: "c",
        8: "text",
        9: b"\1\2",
        10: True,
        11: None,
        12: [1, 1, "x"],
        13: {"key": 1},
        18: {1: "x"},
        20: [1],
        21: {"a": 1},
    }
    assert numbers.failed == dict.fromkeys([14, 15, 16, 17, 19], 3)
    shown = capsys.readouterr().err
    assert "stream 'default', field 'value': a java.util.Date cannot travel to component 'keep'; emit null," in shown
    assert "a java.util.TreeSet cannot travel" in shown
    assert "at demo.Probes$Typed.execute(Probes.java:" in shown


def test_a_bolt_knows_its_topology_and_the_tasks_that_receive_its_rows(path: list[str]) -> None:
    """The context is Storm's own class; ids are asked for when they are read."""
    rows, _ = probe("Tasks", path, [None] * 3, ["number", "told"])
    told = [value for _, value in rows if isinstance(value, str)]
    ids = [value for _, value in rows if isinstance(value, list)]
    assert len(told) == len(ids) == 3
    assert ids == [[3]] * 3
    assert told[0] == "one bolt 2 [3] GlobalStreamId(componentId:numbers, streamId:default) [number, value]"


def test_storms_own_shell_bolt_gets_task_ids_for_its_program(path: list[str]) -> None:
    """It reads the ids in another thread, after `emit` has returned."""
    script = str(SOURCES / "asking.py")
    rows, numbers = run(
        one_bolt(
            AT_LEAST,
            [None] * 20,
            java_class="demo.Probes$Shell",
            arguments=[script],
            class_path=path,
            outputs=["number", "tasks"],
        )
    )
    assert [number for number, tasks in sorted(rows) if tasks == "[]"] == [0]
    assert {tasks for _, tasks in rows} == {"[]", "[3]"}  # a row has the answer to the row before it
    assert numbers.acked == set(range(20))


def test_a_bolt_may_emit_and_ack_in_its_own_threads(path: list[str]) -> None:
    """As in Storm, the collector may be used from any thread."""
    rows, numbers = probe("Threads", path, [None] * 500, ["number", "double"])
    assert sorted(rows) == [(number, 2 * number) for number in range(500)]
    assert numbers.acked == set(range(500))


def test_ticks_arrive_and_acks_may_wait_for_them(path: list[str]) -> None:
    """A bolt that settles a batch at a tick."""
    rows, numbers = probe(
        "Ticks", path, [None] * 20, ["number", "ticks"], config={"topology.tick.tuple.freq.secs": 0.3}
    )
    assert sorted(number for number, _ in rows if isinstance(number, int)) == list(range(20))
    assert numbers.acked == set(range(20))


def test_a_windowed_bolt_runs_in_storms_own_executor(path: list[str]) -> None:
    """At most once, because the last window is not full."""
    rows, _ = probe("Sums", path, [None] * 40, ["number", "sum"], mode=AT_MOST)
    assert sorted(rows) == [(10, sum(range(first, first + 10))) for first in range(0, 40, 10)]


ENDS = {
    "exit": "ended with exit code 3; the last lines of its stderr:",
    "memory": "ended with exit code 4; the last lines of its stderr:",
    "hang": "was killed, because it gave no sign of life for 4 s (timeout_s)",
    "garbage": "was killed, because a frame has 1213486160 bytes, the limit is 33554432 bytes (message_bytes)",
}


def hostile(how: str, path: list[str], folder: Path, mode: str = AT_LEAST) -> TopologyBuilder:
    """The topology with `Probes.Hostile`."""
    return one_bolt(
        mode,
        [None] * COUNT,
        java_class="demo.Probes$Hostile",
        arguments=[how, str(folder / "marker")],
        class_path=path,
        outputs=["number", "double"],
        java_options=["-XX:+UseSerialGC", "-Xmx64m"],
        timeout_s=4,
    )


@pytest.mark.parametrize("how", ENDS)
def test_a_jvm_that_ends_is_named_and_started_again(
    how: str, path: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tuples fail, the spout emits them again, and the next JVM has them."""
    rows, numbers = run(hostile(how, path, tmp_path))
    assert set(rows) == {(number, 2 * number) for number in range(COUNT)}
    assert numbers.failed
    assert numbers.acked == set(range(COUNT))
    shown = capsys.readouterr().err
    assert "component 'bolt', task" in shown
    assert "heron.jvm.Main bolt" in shown
    assert ENDS[how] in shown


ERRORS = {
    "throws": " raised java.lang.IllegalStateException: seven is refused; at demo.Probes$Hostile.execute(Probes.java:",
    "fails": "",
    "surrogate": "java.lang.IllegalStateException: half ?; at",
    "date": "field 'double': a java.util.Date cannot travel to component 'keep'",
}


@pytest.mark.parametrize("how", ERRORS)
def test_a_tuple_that_the_bolt_refuses_fails_alone(
    how: str, path: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JVM goes on; an exception is shown with its stack trace."""
    rows, numbers = run(hostile(how, path, tmp_path))
    assert set(rows) == {(number, 2 * number) for number in range(COUNT) if number != 7}
    assert numbers.failed == {7: 3}
    shown = capsys.readouterr().err
    assert ERRORS[how] in shown
    assert ("\n\tat demo.Probes$Hostile.execute(Probes.java:" in shown) is bool(ERRORS[how])
    assert "Traceback" not in shown
    assert "at heron.jvm." not in shown


MISTAKES = {
    "prints": "printed on stdout",
    "reports": "raised java.lang.IllegalArgumentException: a wrong record; at demo.Probes$Hostile.misbehave(",
    "fields": "stream 'default' has the fields [number, double], and 3 values were emitted",
}


@pytest.mark.parametrize("how", MISTAKES)
def test_a_bolt_that_only_errs_goes_on(
    how: str, path: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No tuple fails: the mistake is shown, and that is all."""
    rows, numbers = run(hostile(how, path, tmp_path))
    assert set(rows) == {(number, 2 * number) for number in range(COUNT)}
    assert not numbers.failed
    assert MISTAKES[how] in capsys.readouterr().err


def test_a_row_of_prepare_arrives(path: list[str], tmp_path: Path) -> None:
    """It leaves when the bolt is ready."""
    rows, _ = run(hostile("early", path, tmp_path))
    assert (-1, -2) in rows
    assert len(rows) == COUNT + 1


def test_a_spout_that_has_ended_emits_its_failed_tuples_again(path: list[str]) -> None:
    """At least once the last call of the spout has to wait for the JVM."""
    builder = TopologyBuilder("early")
    builder.set_config({"topology.reliability.mode": AT_LEAST})
    lines = JvmSpout.spec(
        "lines", java_class="demo.Words$Early", arguments=[20], class_path=path, outputs=["line", "number"]
    )
    builder.add_spec(lines)
    failing = builder.add_bolt("failing", FailOnce, par=1, inputs=[lines])
    builder.add_bolt("keep", Keep, par=1, inputs=[failing])
    with Simulation(builder, clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        assert sorted(row[1] for row in kept(simulation) if isinstance(row[1], int)) == list(range(20))


def test_a_row_of_a_spout_that_python_refuses_fails(path: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Else its spout would wait for ever; here it ends when all are acked. A row of `open` arrives too."""
    builder = TopologyBuilder("listed")
    builder.set_config({"topology.reliability.mode": AT_LEAST})
    listed = JvmSpout.spec("listed", java_class="demo.Words$Listed", class_path=path, outputs=["value"])
    builder.add_spec(listed)
    builder.add_bolt("keep", Keep, par=1, inputs={listed: Grouping.fields("value")})
    with Simulation(builder, clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        assert {value for (value,) in kept(simulation)} == set(range(-1, 10))
    assert "list" in capsys.readouterr().err


def test_an_exception_in_prepare_ends_the_start(
    path: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its line and its stack trace, as an exception in `initialize`; no line of Python is around it."""
    where = r"; at demo\.Probes\$Hostile\.prepare\(Probes\.java:\d+\); correct it"
    with pytest.raises(TopologyFailedError, match=rf"raised java\S+Exception: no connection to the database{where}"):
        run(hostile("prepare", path, tmp_path))
    shown = capsys.readouterr().err
    assert "\njava.lang.IllegalStateException: no connection to the database\n\tat demo.Probes$Hostile.prepare" in shown
    assert "Traceback" not in shown
    assert "[child" not in shown


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"java_class": "demo.Nothing"}, r"the class demo\.Nothing is not on the class path"),
        ({"java_class": "java.util.Date"}, r"java\.util\.Date is no bolt of Storm"),
        ({"java_class": "demo.Probes$WantsTicks"}, r"wants a tick every 5 s; give config=\{'topology.tick.tuple.freq"),
        ({"arguments": [1, 2]}, r"demo\.Probes\$Echo has no constructor for the arguments \[1, 2\]"),
        (
            {"outputs": ["a", "b", "c"]},
            r"declares the stream 'default' with the fields \[number, value, kind\], and the",
        ),
        ({"java_options": ["-Xwrong"]}, r"Unrecognized option: -Xwrong"),
        ({"class_path": ["missing.jar"]}, r"class path: 'missing.jar' does not exist, looked for at"),
        (
            {"java": "/nowhere/java"},
            r"no Java: '/nowhere/java' was looked for in /nowhere/java; install a JDK of Java 11",
        ),
    ],
)
def test_a_component_that_cannot_start_says_why(change: Mapping[str, object], reason: str, path: list[str]) -> None:
    """The message is in the error of the run."""
    arguments: dict[str, object] = {
        "java_class": "demo.Probes$Echo",
        "class_path": path,
        "outputs": ["number", "value", "kind"],
        **change,
    }
    with pytest.raises(TopologyFailedError, match=f"(?s){reason}"):
        run(one_bolt(AT_LEAST, [1], None, **arguments))  # type: ignore[arg-type]  # one of them is wrong


def test_without_storms_jars_the_compiler_says_what_is_missing(path: list[str]) -> None:
    """The class path has to have storm-client."""
    with pytest.raises(TopologyFailedError, match=r"(?s)package org\.apache\.storm\.\S+ does not exist.*class path: "):
        run(one_bolt(AT_LEAST, [1], java_class="demo.Probes$Echo", class_path=path[:1], outputs=["number"]))


def test_java_is_looked_for_in_java_home(path: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says where."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nothing")
    with pytest.raises(TopologyFailedError, match=r"JAVA_HOME \(/nowhere\) and PATH \(/nothing\)"):
        run(one_bolt(AT_LEAST, [1], java_class="demo.Probes$Echo", class_path=path, outputs=["number"]))
