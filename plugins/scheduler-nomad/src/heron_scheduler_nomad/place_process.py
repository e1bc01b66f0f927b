"""The process of a task: ``python -m heron_scheduler_nomad.place_process``. It fetches its launch file, and becomes the
launcher.

A template in the job could write that file. But Nomad ends a task whose template cannot be renewed, so topologies would
end when the servers of Nomad are away for minutes. This process asks once, with the identity of its task.
"""

from __future__ import annotations

import base64
import logging
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from heron.driver_kit.log import JsonLines
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import fields
from heron_scheduler_nomad.job_spec import LAUNCH
from heron_scheduler_nomad.nomad_access import NomadAccess
from heron_scheduler_nomad.nomad_api import NomadApi

__all__ = ["fetch_launch_file"]

_RETRY_S = 1.0
_LAUNCHER = "heron_scheduler_kit.managed.launcher"
_log = logging.getLogger(__name__)


def fetch_launch_file(environment: Mapping[str, str], token: str) -> Path:
    """Return the launch file of this task, which is fetched unless an earlier process of the task has done that.

    Raises:
        SchedulerError: when Nomad does not have it, or does not answer.
    """
    secrets = Path(environment["NOMAD_SECRETS_DIR"])
    path = secrets / LAUNCH
    if not path.exists():
        access = NomadAccess(f"unix://{secrets}/api.sock", token, environment["NOMAD_NAMESPACE"])
        names = (environment[f"NOMAD_{each}"] for each in ("JOB_ID", "GROUP_NAME", "TASK_NAME"))
        variable = f"nomad/jobs/{'/'.join(names)}"
        found = NomadApi(lambda: access).find(f"var/{variable}")
        if found is None:
            msg = f"the variable {variable} does not exist: the topology was killed, or the container was removed"
            raise SchedulerError(msg)
        write_private(path, base64.b64decode(str(fields(found.get("Items"))[LAUNCH])))
    return path


def _main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    logging.getLogger().handlers[0].setFormatter(JsonLines((), process="launcher"))
    token = os.environ.pop("NOMAD_TOKEN", "")  # no process of the container inherits it
    path = None
    while path is None:
        try:
            path = fetch_launch_file(os.environ, token)
        except SchedulerError as error:
            _log.warning("the launch file cannot be fetched: %s", error)
            threading.Event().wait(_RETRY_S)
    os.execv(sys.executable, [sys.executable, "-P", "-m", _LAUNCHER, str(path)])  # noqa: S606


if __name__ == "__main__":
    _main()
