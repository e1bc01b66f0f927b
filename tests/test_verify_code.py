"""What of a Python file is in a key: all that can change a result, and nothing else."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verify.runtime_code import code_digest, drop_unread, used_names
from verify.source_facts import source_facts

FUTURE = "from __future__ import annotations\n"
FILE = FUTURE + textwrap.dedent(
    '''
    """A module."""
    import os
    from dataclasses import dataclass

    LIMIT: int = 3

    @dataclass
    class Plan:
        """A plan."""

        size: int = 1

        def grown(self, by: int) -> Plan:
            """A larger plan."""
            total: int = self.size + by
            return Plan(total)

    def text(plan: Plan) -> str:
        return f"{plan.size:>{LIMIT}} of {LIMIT!r}"
    '''
)


def digest(text: str) -> str:
    tree = ast.parse(text)
    drop_unread(tree, used_names(tree))
    return code_digest(tree)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Another text."""'),
        ('"""A module."""', ""),
        ('    """A larger plan."""', "    # Larger"),
        ("import os", "import os\n\n\n"),
        ("LIMIT: int = 3", "LIMIT = 3"),
        ("total: int = ", "total = "),
        ("by: int) -> Plan", "by: float) -> object"),
        ("return Plan(total)", "return Plan(  # at last\n            total,\n        )"),
        ('    """A plan."""', "    pass"),
        ("import os", "import os\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sys"),
    ],
)
def test_what_cannot_change_a_result_is_left_out(old: str, new: str) -> None:
    """Comments, lines, docstrings, annotations of functions, variables and imports for type checkers."""
    assert old in FILE
    typing = "from typing import TYPE_CHECKING\n" if "TYPE_CHECKING" in new else ""
    assert digest(FILE.replace(old, new)) == digest(FILE.replace("import os", f"import os\n{typing}"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size: int = 1", "size: float = 1"),
        ("size: int = 1", "size = 1"),
        ("LIMIT: int = 3", "LIMIT: int = 4"),
        ("LIMIT: int = 3", "LIMIT: int = 3.0"),
        ("LIMIT: int = 3", "LIMIT: int = '3'"),
        ("by: int)", "by: int = 1)"),
        ("self.size + by", "by + self.size"),
        ("import os", "import sys"),
        (":>{LIMIT}", ":<{LIMIT}"),
        ("{LIMIT!r}", "{LIMIT!s}"),
        ("{LIMIT!r}", "{LIMIT}"),
        ("    @dataclass\n", ""),
        ("by: int)", "*by: int)"),
        ("class Plan:", "class Plan(object):"),
        (FUTURE, ""),
    ],
)
def test_what_can_change_a_result_counts(old: str, new: str) -> None:
    """Among it annotations of classes, which dataclasses read."""
    old, new = textwrap.dedent(old), textwrap.dedent(new)
    assert old in FILE
    assert digest(FILE.replace(old, new)) != digest(FILE)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (f'{FUTURE}def f():\n    """A."""\n    return f.__doc__\n', '"""B."""'),
        (f'{FUTURE}@click.command()\ndef f():\n    """A."""\n    run()\n', '"""B."""'),
        (f'{FUTURE}@group.command("x")\ndef f():\n    """A."""\n    run()\n', '"""B."""'),
    ],
)
def test_docstrings_that_are_read_count(text: str, other: str) -> None:
    """By the file itself, or by click, which shows them as help."""
    assert digest(text) != digest(text.replace('"""A."""', other))


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: int):\n    return x\n",
        f"{FUTURE}def f(x: int):\n    return f.__annotations__\n",
        f"{FUTURE}from typing import get_type_hints\ndef f(x: int):\n    return x\n",
        f"{FUTURE}from functools import singledispatch\n@singledispatch\ndef f(x: int):\n    return x\n",
    ],
)
def test_annotations_that_are_evaluated_or_read_count(text: str) -> None:
    """Without the import from the future, an annotation runs."""
    assert digest(text) != digest(text.replace("x: int", "x: str"))
    assert digest(text) != digest(text.replace("x: int", "x"))


def test_a_name_that_is_only_annotated_is_local() -> None:
    """So the statement is more than an annotation."""
    text = f"{FUTURE}def f():\n    x: int\n    return x\n"
    assert digest(text) == digest(text.replace("int", "str"))
    assert digest(text) != digest(text.replace("    x: int\n", ""))


STATEMENTS = st.sampled_from(
    [
        "x = 1",
        "x += 2",
        "y = f'{x} of {x:>{x}}'",
        "def f(a, *b, c=3, **d):\n    return a",
        "class C:\n    n: int = 1",
        "if x:\n    y = 2\nelse:\n    y = 3",
        "match x:\n    case None:\n        y = 1",
        "async def g():\n    await g()",
        "print('a' 'b', [], {}, ())",
        "x = None",
        "x = [*range(3)]",
        "lambda: 0",
    ]
)
UNREAD = st.sampled_from(["", "# a comment", "pass", "'text'", "...", "z: int = 0"])


@given(st.lists(st.tuples(STATEMENTS, UNREAD), max_size=6), st.lists(STATEMENTS, max_size=6))
def test_files_have_one_digest_if_they_differ_only_in_what_is_left_out(
    pairs: list[tuple[str, str]], others: list[str]
) -> None:
    """Both directions: nothing else is left out."""
    kept = [(code, "z = 0" if note.startswith("z") else "") for code, note in pairs]
    noted = "\n".join([FUTURE, *(line for pair in pairs for line in pair)])
    plain = "\n".join([FUTURE, *(line for pair in kept for line in pair)])
    assert digest(noted) == digest(plain)
    other = "\n".join([FUTURE, *others])
    assert (digest(other) == digest(plain)) == (ast.dump(ast.parse(other)) == ast.dump(ast.parse(plain)))


def test_the_digest_is_the_same_on_each_version_of_python() -> None:
    """Trees differ: a record that one version made has to be valid on another."""
    assert digest(FILE) == "65e0da572f51059ffa754d2a6d8a97a3df0f9baddd5d45f553e3ddb51372002c"


def test_marks_of_tests_are_those_of_function_class_and_module() -> None:
    """They decide which files are suites."""
    facts = source_facts(
        "pytestmark = [pytest.mark.a, pytest.mark.timeout(3)]\n@pytest.mark.b\nclass TestX:\n"
        "    @pytest.mark.c(1)\n    def test_x(self): run()\n    def helper(self): run()\n\n\ndef test_y(): run()\n"
    )
    assert facts.tests == [{"a", "timeout", "b", "c"}, {"a", "timeout"}]
