"""Settings in a file of Java properties."""

from __future__ import annotations

from heron_spark_kit.spark_context import encode_properties


def test_any_text_is_escaped_for_java() -> None:
    """A password may begin with a space, look like a comment, or contain a backslash."""
    written = encode_properties({"a.b": " #x=y:z!\\\n\t", "c": "\u00e9\U0001f600", "d": ""})
    assert written == b"a.b=\\ \\#x\\=y\\:z\\!\\\\\\n\\t\nc=\\u00e9\\ud83d\\ude00\nd=\n"
