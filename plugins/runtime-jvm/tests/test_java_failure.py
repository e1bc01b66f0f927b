"""Exceptions of Java as their authors read them."""

from __future__ import annotations

import pytest

from heron_runtime_jvm.java_failure import JavaFailure

RUNTIME = "\tat heron.jvm.BoltTask.take(BoltTask.java:54)\n\tat heron.jvm.Main.main(Main.java:38)\n"


def test_the_place_is_the_authors_innermost_line() -> None:
    """Libraries are above it, the runtime is below, and is left out."""
    trace = (
        "java.lang.RuntimeException: no\n"
        "\tat java.base/java.util.Objects.check(Objects.java:3)\n"
        "\tat org.apache.storm.tuple.Fields.fieldIndex(Fields.java:8)\n"
        "\tat app//com.example.Split$1.execute(Split.java:20)\n"
        "\tat com.example.Split.execute(Split.java:30)\n"
        f"{RUNTIME}Caused by: java.io.IOException: disk\n\t... 2 more\n"
    )
    failure = JavaFailure("java.lang.RuntimeException", "no", trace, "the JVM")
    assert failure.place == "com.example.Split$1.execute(Split.java:20)"
    assert str(failure) == "java.lang.RuntimeException: no"
    assert failure.exception == "java.lang.RuntimeException"
    assert failure.trace == trace.replace(RUNTIME, "")


def test_a_starter_is_an_authors_class() -> None:
    """Though it is below Storm's package."""
    trace = "java.lang.Error\n\tat org.apache.storm.starter.Words.execute(Words.java:1)\n"
    failure = JavaFailure("java.lang.Error", "null", trace, "the JVM")
    assert (str(failure), failure.place) == (
        "java.lang.Error",
        "org.apache.storm.starter.Words.execute(Words.java:1)",
    )


@pytest.mark.parametrize("trace", [f"java.lang.Error: no\n{RUNTIME}", ""])
def test_what_the_runtime_refuses_has_no_trace(trace: str) -> None:
    """Its message says what the user has to change."""
    failure = JavaFailure("java.lang.Error", "no", trace, "the JVM")
    assert (failure.place, failure.trace) == ("the JVM", "")
