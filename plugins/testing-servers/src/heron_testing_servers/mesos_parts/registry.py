"""What a master of the Mesos test server keeps in a file: the agents that it knows, and what is gone for good."""

from __future__ import annotations

from pathlib import Path

from heron_testing_servers.http_service import read_json, write_json

__all__ = ["Registry"]


class Registry:
    """Ids, in a file. Everything else a master learns from agents and frameworks."""

    def __init__(self, place: Path) -> None:
        self._place = place
        kept = read_json(place, {"agents": [], "gone_agents": [], "gone_frameworks": []})
        self.agents: list[str] = kept["agents"]
        self.gone_agents: list[str] = kept["gone_agents"]
        self.gone_frameworks: list[str] = kept["gone_frameworks"]

    def save(self) -> None:
        """Write the file."""
        kept = {"agents": self.agents, "gone_agents": self.gone_agents, "gone_frameworks": self.gone_frameworks}
        write_json(self._place, kept)
