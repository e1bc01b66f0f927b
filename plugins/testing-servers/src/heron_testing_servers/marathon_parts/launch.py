"""What a task of Marathon gets before its start: variables and artifacts."""

from __future__ import annotations

import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

__all__ = ["fetch", "image_of", "variables"]

Json = dict[str, Any]


def image_of(app: Json) -> str:
    """Return the image of an app, or the empty text."""
    return str(((app.get("container") or {}).get("docker") or {}).get("image", ""))


def variables(app: Json, task: Json) -> dict[str, str]:
    """Return the variables that Marathon sets for a task."""
    labels = {re.sub(r"\W", "_", name).upper(): value for name, value in app["labels"].items()}
    env = {
        **{f"MARATHON_APP_LABEL_{name}": value for name, value in labels.items()},
        "MARATHON_APP_ID": app["id"],
        "MARATHON_APP_VERSION": app["version"],
        "MARATHON_APP_LABELS": " ".join(labels),
        "MARATHON_APP_DOCKER_IMAGE": image_of(app),
        "MARATHON_APP_RESOURCE_CPUS": str(app["cpus"]),
        "MARATHON_APP_RESOURCE_MEM": str(app["mem"]),
        "MARATHON_APP_RESOURCE_DISK": str(app["disk"]),
        "MESOS_TASK_ID": task["id"],
        "HOST": task["host"],
        "PORTS": ",".join(map(str, task["ports"])),
    }
    for index, port in enumerate(task["ports"]):
        env[f"PORT{index}"] = str(port)
        if named := app["portDefinitions"][index].get("name"):
            env[f"PORT_{named.upper().replace('-', '_')}"] = str(port)
    if task["ports"]:
        env["PORT"] = str(task["ports"][0])
    return env


def fetch(artifact: Json, sandbox: Path) -> None:
    """Bring an artifact into the sandbox, as the fetcher of Mesos does."""
    uri = artifact["uri"]
    place = sandbox / (artifact.get("destPath") or uri.rpartition("/")[2])
    with urllib.request.urlopen(uri if "://" in uri else f"file://{uri}") as source, place.open("wb") as file:  # noqa: S310
        shutil.copyfileobj(source, file)
    if artifact.get("executable"):
        place.chmod(0o755)
    elif artifact.get("extract", True) and place.name.endswith((".tar.gz", ".tgz", ".tar", ".zip")):
        shutil.unpack_archive(place, sandbox)
