"""A Scribe collector as the source of topologies and pipelines."""

from __future__ import annotations

from heron_connector_scribe.announcement import announced
from heron_connector_scribe.batch import LogEntry
from heron_connector_scribe.service_options import ServiceOptions
from heron_connector_scribe.source import ScribeSource
from heron_connector_scribe.spout import ScribeSpout

__all__ = ["LogEntry", "ScribeSource", "ScribeSpout", "ServiceOptions", "announced"]
