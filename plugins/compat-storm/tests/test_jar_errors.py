"""Jars, arguments and class paths that are wrong: each error names the place and the remedy, and no JVM starts."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from heron.errors import ConfigError, UsageError
from heron_compat_storm.jar_file import JarFile
from heron_compat_storm.jar_program import write_program
from heron_compat_storm.main_end import MainEnd, why_nothing
from heron_compat_storm.main_run import MainCall
from heron_compat_storm.storm_libraries import storm_libraries

MAIN = b"main ([Ljava/lang/String;)V org/apache/storm/StormSubmitter"
SUBMITTER = "org/apache/storm/StormSubmitter.class"


def write_jar(path: Path, **files: bytes) -> Path:
    """Write a jar; the names of the files have a slash for each double underscore."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_class", ".class"), content)
    return path


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A jar with two classes, of which one submits."""
    return write_jar(tmp_path / "topology.jar", com__Words_class=MAIN, com__Split_class=b"execute")


def test_the_class_is_necessary(jar: Path, tmp_path: Path) -> None:
    """The error begins with the mistake, and lists the classes that have a main."""
    write_jar(
        jar, com__Words_class=MAIN, com__Sums_class=MAIN, com__Split_class=b"execute", **{"com/Sums$1.class": MAIN}
    )
    with pytest.raises(
        UsageError, match=r"^no class behind \S+topology.jar: name .*Storm:\n    com.Sums\n    com.Words$"
    ):
        write_program(jar, None, ["-c", "key=value"], tmp_path)


@pytest.mark.parametrize("given", [["-c"], ["-c", "key"], ["-c", "=value"], ["com.Words", "x", "-c", "file"]])
def test_an_option_without_a_value_is_refused(jar: Path, tmp_path: Path, given: list[str]) -> None:
    """Storm would drop it, and main would not get it."""
    with pytest.raises(UsageError, match=r"-c '\S*' has no value; give -c KEY=VALUE, or put one more -- in front of"):
        write_program(jar, None, given, tmp_path)


@pytest.mark.parametrize(
    ("words", "command", "options"),
    [
        ("-c a=1 C x -c b=2=3 y", ["C", "x", "y"], ["a=1", "b=2=3"]),
        ("C -conf f --c -c=1", ["C", "-conf", "f", "--c", "-c=1"], []),
        ("-c a=1 C x -- -c b=2 -- y", ["C", "x", "-c", "b=2", "--", "y"], ["a=1"]),
    ],
)
def test_options_stand_anywhere_as_with_storm(words: str, command: list[str], options: list[str]) -> None:
    """Nobody's main gets them from Storm, except behind a `--`."""
    assert MainCall.parse(words.split(), "x.jar") == MainCall(command, options)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("com.Word", "nearest: 'com.Words'; "),
        ("WordCounts", "nearest: 'org.example.WordCount1', 'org.example.WordCount2', 'org.example.WordCount3'; "),
        ("Q", ""),
    ],
)
def test_a_class_that_is_not_there_has_the_nearest_ones(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, nearest: str
) -> None:
    """A typo, or a missing package, is found before a JVM starts; the error begins with it."""
    others = {f"org__example__WordCount{number}_class": MAIN for number in (1, 2, 3, 4)}
    write_jar(jar, com__Words_class=MAIN, com__Split_class=b"execute", **others)
    write_jar(tmp_path / "storm-client-2.8.3.jar", **{SUBMITTER: b""})
    monkeypatch.setenv("HERON_STORM_LIB", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        write_program(jar, None, [given], tmp_path)
    lists = "`heron plan topology.jar` lists those with a main method that use Storm"
    assert str(caught.value) == f"no class {given!r} in {jar}; {nearest}{lists}"


def test_a_file_that_is_no_jar_is_refused(tmp_path: Path) -> None:
    """A download may have failed."""
    path = tmp_path / "topology.jar"
    path.write_text("<html>")
    with pytest.raises(UsageError, match=r"topology.jar: is not a jar that can be read: .*; build it again"):
        JarFile(path)


def test_storm_is_looked_for_in_its_places(jar: Path, tmp_path: Path) -> None:
    """The folder of the variable goes before an installation, and a jar with Storm inside needs neither."""
    content = JarFile(jar)
    given, home = tmp_path / "given", tmp_path / "home"
    for folder in (given, home / "lib-worker"):
        folder.mkdir(parents=True)
        write_jar(folder / "storm-client-2.8.3.jar", **{SUBMITTER: b""})
        write_jar(folder / "kryo.jar")
    names = ["kryo.jar", "storm-client-2.8.3.jar"]
    found = storm_libraries(jar, content, {"HERON_STORM_LIB": str(given), "STORM_HOME": str(home)})
    assert found == tuple(given / each for each in names)
    found = storm_libraries(jar, content, {"STORM_HOME": str(home)})
    assert found == tuple(home / "lib-worker" / each for each in names)
    whole = write_jar(tmp_path / "whole.jar", **{SUBMITTER: b""})
    assert storm_libraries(whole, JarFile(whole), {}) == ()


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "does not bring Storm's classes, and neither HERON_STORM_LIB nor STORM_HOME is set"),
        ({"HERON_STORM_LIB": "/no/such"}, "HERON_STORM_LIB=/no/such is no folder"),
        ({"STORM_HOME": "/proc/self"}, "STORM_HOME/lib-worker=/proc/self/lib-worker is no folder"),
        (
            {"HERON_STORM_LIB": "/proc/self"},
            "HERON_STORM_LIB=/proc/self has no jar with org.apache.storm.StormSubmitter",
        ),
    ],
)
def test_missing_jars_of_storm_have_the_command_that_gets_them(
    jar: Path, environment: dict[str, str], problem: str
) -> None:
    """The version is that of the topology, so the command reads its pom.xml."""
    with pytest.raises(ConfigError) as caught:
        storm_libraries(jar, JarFile(jar), environment)
    assert problem in str(caught.value)
    assert "`mvn dependency:copy-dependencies -DincludeScope=provided -DoutputDirectory=storm-lib`" in str(caught.value)
    assert str(caught.value).endswith("then set HERON_STORM_LIB=storm-lib")


def test_a_jar_for_an_old_storm_is_recognised(tmp_path: Path) -> None:
    """Its packages had other names."""
    path = write_jar(tmp_path / "old.jar", backtype__storm__StormSubmitter_class=b"")
    with pytest.raises(ConfigError, match=r"it brings Storm before 1\.0, whose packages were backtype\.storm"):
        storm_libraries(path, JarFile(path), {})


def test_resources_are_written_and_stay_in_their_folder(tmp_path: Path) -> None:
    """A jar from a foreign place may try to write elsewhere."""
    path = write_jar(tmp_path / "topology.jar", resources__a__b=b"x", other=b"y")
    assert JarFile(path).write_resources(tmp_path / "out")
    assert [each.name for each in (tmp_path / "out").rglob("*") if each.is_file()] == ["b"]
    bad = write_jar(tmp_path / "bad.jar", **{"resources__..__..__x": b"x"})
    with pytest.raises(UsageError, match="would leave its folder; do not trust this jar"):
        JarFile(bad).write_resources(tmp_path / "out")
    assert not JarFile(write_jar(tmp_path / "none.jar")).write_resources(tmp_path / "out")


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        (MainEnd(late=True), "main submits no topology within 120 s; call StormSubmitter"),
        (
            MainEnd(3, returned=False),
            "main ended its JVM with exit code 3 before it submitted a topology; give the arg",
        ),
        (MainEnd(-9, returned=False), "main ended its JVM with signal 9"),
        (MainEnd(), "main returned without StormSubmitter.submitTopology; give the arguments .*; given: x y"),
        (
            MainEnd(exception="java.lang.NoSuchMethodException", message="com.Words.main([Ljava.lang.String;)"),
            "has no method `public static void main",
        ),
        (
            MainEnd(exception="java.lang.NoClassDefFoundError", message="org/apache/storm/LocalCluster"),
            "main starts a LocalCluster, .*; give the arguments with which it submits to a cluster",
        ),
        (
            MainEnd(exception="java.lang.NoClassDefFoundError", message="com/google/common/base/Joiner"),
            "main needs the class com.google.common.base.Joiner, which no jar has; add its jar to the folder HERON",
        ),
        (
            MainEnd(exception="java.lang.NoClassDefFoundError", message="backtype/storm/Config"),
            "backtype.storm.Config, which no jar has; the topology is for Storm before 1.0, rebuild it for 2.x",
        ),
        (
            MainEnd(exception="java.lang.UnsupportedClassVersionError", message="com/Words has been compiled by"),
            "com/Words has been compiled by; set JAVA_HOME to a newer Java",
        ),
        (
            MainEnd(exception="a.B", message="reason", trace="a.B: reason\n\tat com.Words.main(Words.java:3)\n"),
            r"main raised a.B: reason; correct it, or give the arguments .*; given: x y\n    at com.Words.main",
        ),
    ],
)
def test_a_main_that_submits_nothing_has_its_reason(jar: Path, end: MainEnd, problem: str) -> None:
    """Each has its own remedy."""
    text = why_nothing("topology.jar: com.Words", JarFile(jar), ["com.Words", "x", "y"], end, 120)
    with pytest.raises(UsageError, match=problem):
        raise UsageError(text)
