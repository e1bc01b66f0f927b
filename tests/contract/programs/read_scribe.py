"""Is a Scribe collector. A message is a text with a line end."""

from __future__ import annotations

from heron_connector_scribe import ScribeSource, ServiceOptions
from heron_testing.connectors.programs import read_source

if __name__ == "__main__":
    read_source(lambda given: ScribeSource(ServiceOptions.of(given)), lambda entry: entry.message.decode().rstrip("\n"))
