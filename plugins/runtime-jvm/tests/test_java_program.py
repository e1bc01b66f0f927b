"""Where Java is looked for, class paths, and the cache of classes. Small scripts take the place of Java."""

from __future__ import annotations

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from heron_runtime_jvm import JavaError, JavaProgram, compiled_classes, expanded_class_path, find_java

JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"


def program(folder: Path, name: str, text: str) -> Path:
    """A script."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(0o755)
    return path


def write_jar(path: Path, name: str, text: str) -> None:
    """A jar of one file."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, text)


def test_java_home_has_precedence_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with Storm and Maven; a program with a folder in its name has precedence over both."""
    for each, version in (("home/bin", '"21"'), ("path", '"11.0.2"'), ("own", '"17-ea"')):
        program(tmp_path / each, "java", f"echo 'java version {version}' >&2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == JavaProgram(tmp_path / "home/bin/java", "21", 21)
    assert find_java(str(tmp_path / "own/java")).release == 17
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == JavaProgram(tmp_path / "path/java", "11.0.2", 11)


def test_a_missing_java_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the remedy."""
    monkeypatch.setenv("PATH", "/nothing")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    reason = r"'java' was looked for in JAVA_HOME \(not set\) and PATH \(/nothing\); install a JDK of Java 11 or newer"
    with pytest.raises(JavaError, match=reason):
        find_java()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo 'java version \"1.8.0_392\"' >&2", r"is Java 1\.8\.0_392, which is too old; install a JDK of Java 11"),
        ("echo 'no memory' >&2; exit 1", "does not show a version of Java, but: no memory"),
        ("exit 7", "but: exit code 7"),
    ],
)
def test_a_java_that_is_of_no_use_is_named(text: str, reason: str, tmp_path: Path) -> None:
    """The message has its path and what it says."""
    java = program(tmp_path, "java", text)
    with pytest.raises(JavaError, match=f"{java} ?.*{reason}"):
        find_java(str(java))


def test_a_class_path_is_expanded(tmp_path: Path) -> None:
    """In the order of its entries, and the jars of a folder by name."""
    for name in ("lib/b.jar", "lib/a.jar", "lib/notes.txt", "own.jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = ["own.jar", "lib/*", str(tmp_path / "lib")]
    assert expanded_class_path(names, tmp_path) == [
        tmp_path / each for each in ("own.jar", "lib/a.jar", "lib/b.jar", "lib")
    ]
    with pytest.raises(JavaError, match="class path: 'other/\\*' has no jars, looked for at"):
        expanded_class_path(["other/*"], tmp_path)
    with pytest.raises(JavaError, match=r"class path: 'other\.jar' does not exist, looked for at"):
        expanded_class_path(["other.jar"], tmp_path)


def test_classes_are_compiled_once_for_what_they_are_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another source, jar or version of Java gives another folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    log = tmp_path / "log"
    java = JavaProgram(program(tmp_path, "java", JAVA_17), "17", 17)
    program(tmp_path, "javac", f'echo compiled >> {log}; touch "$2/Made.class"')
    source, jar = tmp_path / "Made.java", tmp_path / "a.jar"
    source.write_text("class Made {}", encoding="ascii")
    write_jar(jar, "org/apache/storm/task/IBolt.class", "1")
    first = compiled_classes("made", [source], [jar], java)
    assert (first / "Made.class").exists()
    assert compiled_classes("made", [source], [jar], java) == first
    own = tmp_path / "own.jar"
    for text in ("1", "22"):  # a jar without Storm's interfaces changes nothing
        write_jar(own, "com/example/Count.class", text)
        assert compiled_classes("made", [source], [jar, own], java) == first
    write_jar(jar, "org/apache/storm/task/IBolt.class", "22")
    second = compiled_classes("made", [source], [jar], java)
    third = compiled_classes("made", [source], [jar], JavaProgram(java.path, "21", 21))
    source.write_text("class Made { }", encoding="ascii")
    fourth = compiled_classes("made", [source], [jar], java)
    assert len({first, second, third, fourth}) == 4
    assert log.read_text(encoding="ascii") == "compiled\n" * 4
    assert {each.name for each in (tmp_path / "cache/heron/jvm").iterdir()} == {
        each.name for each in (first, second, third, fourth)
    }


def test_processes_that_need_the_same_classes_compile_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks of a topology start at the same time, and a compilation takes seconds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    log, gate, source = tmp_path / "log", tmp_path / "gate", tmp_path / "Made.java"
    os.mkfifo(gate)
    source.touch()
    java = JavaProgram(program(tmp_path, "java", JAVA_17), "17", 17)
    program(tmp_path, "javac", f"echo compiled >> {log}; cat {gate}")
    told: list[str] = []
    with ThreadPoolExecutor(3) as threads:
        calls = [
            threads.submit(compiled_classes, "made", [source], [], java, lambda: told.append("compiling"))
            for _ in range(3)
        ]
        gate.write_text("go", encoding="ascii")  # waits for a compiler
        assert len({each.result(60) for each in calls}) == 1
    assert (log.read_text(encoding="ascii"), told) == ("compiled\n", ["compiling"])


def test_what_the_compiler_refuses_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of it is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = JavaProgram(program(tmp_path, "java", JAVA_17), "17", 17)
    program(tmp_path, "javac", "echo 'Made.java:1: error: no such class' >&2; exit 1")
    source = tmp_path / "Made.java"
    source.touch()
    with pytest.raises(
        JavaError, match=r"(?s)refuses Made.java:\n  Made.java:1: error: no such class\nclass path: none"
    ):
        compiled_classes("made", [source], [], java)
    assert list((tmp_path / "cache/heron/jvm").iterdir()) == []


def test_without_a_compiler_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run-time environment alone is not enough."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = JavaProgram(program(tmp_path, "java", JAVA_17), "17", 17)
    source = tmp_path / "Made.java"
    source.touch()
    with pytest.raises(JavaError, match=f"Java 17 at {java.path} has no compiler, looked for at {tmp_path}/javac"):
        compiled_classes("made", [source], [], java)
