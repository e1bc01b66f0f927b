"""YAML of configuration: JSON values with their lines, and an error for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import ConfigError
from heron_cli.profiles.located import leaves, path_text, plain
from heron_cli.profiles.yaml_file import parse_yaml, read_yaml


def test_every_value_has_its_line(tmp_path: Path) -> None:
    """Errors name the line."""
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nb:\n  c: [x,\n    y]\n  d: {}\n")
    document = read_yaml(path)
    assert plain(document) == {"a": 1, "b": {"c": ["x", "y"], "d": {}}}
    lines = {path_text(steps): leaf.origin.place.rpartition(":")[2] for steps, leaf in leaves(document)}
    assert lines == {"a": "1", "b.c[0]": "3", "b.c[1]": "4", "b.d": "5"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1_000", 1000),
        ("0x10", 16),
        ("-7", -7),
        ("010", "010"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("2026-01-01", "2026-01-01"),
        (".inf", ".inf"),
        ("true", True),
        ("~", None),
        ("''", ""),
        ("'7'", "7"),
        ("localhost:2181", "localhost:2181"),
        ("&a [1, *b]".replace(", *b", ""), [1]),
    ],
)
def test_values_are_those_of_json(text: str, value: object) -> None:
    """Numbers follow YAML 1.2; dates and times of day stay text."""
    found = parse_yaml(text, "here")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: 2\na: 3", "line 3: duplicate key 'a'; keep one"),
        (b"a:\n\tb: 1", "line 2: a tab in the indentation; indent with spaces"),
        (b"a: [1", "line 1: expected ',' or ']'"),
        (b"a: b: c", "line 1: mapping values are not allowed here"),
        (b"a: 1\n---\nb: 2", "line 2: but found another document"),
        (b"a: 1\n\xff", "line 2: not UTF-8 at byte 5; save the file as UTF-8"),
        (b"a: 1\nb: \0", r"line 2: a character that YAML does not allow, '\x00'; remove it"),
        (b"3: x", "line 1: key 3 is not text; quote it"),
        (b"[a]: x", "line 1: key ['a'] is not text"),
        (b"a: !!python/object:os.system x", "could not determine a constructor for the tag"),
        (b"a: !!binary eA==", "line 1: !!binary is not a JSON type; write it as text"),
        (b"a: !!set {x}", "line 1: !!set is not a JSON type"),
        (b"a: &a {x: 1}\nb:\n  <<: *a", "line 3: `<<` is not supported; a profile extends another with"),
        (b"a: &a [*a]", "line 1: an alias inside its own value"),
        (b"a: *b", "line 1: found undefined alias 'b'"),
        (b"a: " + b"[" * 5000, "sections are nested too deeply"),
        (b"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
         b"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d]",
         "more than 10000 values"),
        (b"#" * 1048577, "larger than 1048576 bytes"),
    ],
)  # fmt: skip
def test_file_that_is_not_configuration_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """The error has the line, if there is one, and the remedy."""
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_file_that_does_not_open_is_named(tmp_path: Path) -> None:
    """The cases are a folder, a broken link and a device without an end."""
    (tmp_path / "a.yaml").mkdir()
    (tmp_path / "b.yaml").symlink_to(tmp_path / "nothing")
    (tmp_path / "c.yaml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"a\.yaml: cannot be read: it is a folder; put a YAML file in its place"):
        read_yaml(tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match=r"b\.yaml: cannot be read: No such file or directory"):
        read_yaml(tmp_path / "b.yaml")
    with pytest.raises(ConfigError, match=r"c\.yaml: cannot be read: it is not a regular file"):
        read_yaml(tmp_path / "c.yaml")


def test_byte_order_mark_is_not_a_part_of_the_first_key(tmp_path: Path) -> None:
    """Some editors write a byte order mark."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1")
    assert plain(read_yaml(path)) == {"a": 1}
