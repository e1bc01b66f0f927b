"""Reads text files. A line is a record."""

from __future__ import annotations

from heron_streamlet import TextFiles
from heron_testing.connectors.programs import read_source

if __name__ == "__main__":
    read_source(lambda given: TextFiles(given["pattern"]), str)
