"""Settings as Java reads them from a file."""

from __future__ import annotations

from heron_scheduler_spark.properties_file import encode_properties


def test_any_text_is_written_so_that_java_reads_it_as_it_was() -> None:
    """A password may begin with a space, look like a comment, and have a backslash in it."""
    written = encode_properties({"a.b": " #x=y:z!\\\n\t", "c": "\u00e9\U0001f600", "d": ""})
    assert written == b"a.b=\\ \\#x\\=y\\:z\\!\\\\\\n\\t\nc=\\u00e9\\ud83d\\ude00\nd=\n"
