"""The batch script of a container: what ``sbatch`` reads, and what runs on the node. Pure, and without secrets."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace

from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_slurm.options import SlurmOptions
from heron_scheduler_slurm.slurm_jobs import job_name

__all__ = ["AFTER", "job_script", "limits"]

AFTER = "--dependency=afternotok:"
"""A successor starts if the job before it fails, is cancelled or preempted, loses its node, or ends with a code."""

# The launcher reaches other containers by the address that Slurm has for this node. A successor is submitted as soon as
# the job runs, because nobody could do it after the loss of the node. The end of the job is in order if it has
# no launch file any more: then the exit code is 0, and Slurm drops the successor. With proctrack/linuxproc Slurm leaves
# the processes of a script that was killed by signal 9; the loop that looks at the output ends them.
_BODY = """
file={file}
out={out}
stop= child=
warned() {{ timeout {save_s} {save}; }}
submit() (
    unset $(env | sed -n 's/^\\(SLURM[A-Z0-9_]*\\)=.*/\\1/p' | grep -v '^SLURM_CONF$')
    sbatch --parsable "$@" {script}
)
queue() {{ squeue -h -u "$(id -u)" -n {managers} "$@"; }}
moves() {{
    first=$(queue -t RUNNING -w "$SLURMD_NODENAME" -S S,i -o %A | head -n 1)
    [ "${{first:-$SLURM_JOB_ID}}" != "$SLURM_JOB_ID" ] || return
    job=$(submit "--exclude=$(queue -t RUNNING -o %N | paste -s -d , -){excluded}") || return
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 1
        queue -t PENDING -o %A | grep -qx "$job" || return 0
    done
    scancel --state=PENDING "$job"
    queue -t RUNNING -o %A | grep -qx "$job"
}}
{moves}
trap 'stop=1; kill -TERM $child 2>/dev/null' TERM
trap 'warned; stop=1; kill -TERM $child 2>/dev/null' USR1
(
    trap 'kill $! 2>/dev/null; exit' TERM
    trap '' USR1
    while [ -e "$file" ] && ! submit {after}$SLURM_JOB_ID --kill-on-invalid-dep=yes; do
        sleep 5 & wait $!
    done
    while sleep 20 & wait $!; do
        kill -0 $$ || kill -TERM -$$
        [ "$(stat -c %s "$out")" -lt {most} ] || {{ cp "$out" "$out.1"; : > "$out"; }}
    done
) &
keeper=$!
name=$(scontrol show node -o "$SLURMD_NODENAME" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')
address=$(getent ahostsv4 "${{name:-$(uname -n)}}" | awk 'NR == 1 {{ print $1 }}')
export HERON_HOST_ADDRESS="${{HERON_HOST_ADDRESS:-$address}}"
while [ -z "$stop" ] && [ -e "$file" ]; do
    {launcher} "$file" &
    child=$!
    [ -z "$stop" ] || kill -TERM $child
    while kill -0 $child 2>/dev/null; do wait $child; done
    [ -n "$stop" ] || {{ echo "the launcher has ended, and starts again"; sleep 1; }}
done
kill $keeper
wait $keeper
[ -e "$file" ] && exit 75
exit 0
"""
_EXCLUDE = "--exclude="
_LAUNCHER = "heron_scheduler_kit.managed.launcher"
_LATE_S = 10  # the end of processes and the messages of Slurm take time too
_MOST_BYTES = 10 * 1024 * 1024


def job_script(
    job: ManagedJob, request: ContainerRequest, home: Path, options: SlurmOptions, avoided: Collection[str] = ()
) -> str:
    """Return the script of a container whose files are in `home`, and which runs on no node of `avoided`."""
    excluded = [each.partition("=")[2] for each in options.extra if each.startswith(_EXCLUDE)]
    excluded += sorted(avoided)
    about = f"heron topology={job.topology} container={request.container_id} run={job.topology_id} owner={job.owner}"
    labels = f"{about} role={job.role} env={job.env}".translate({ord('"'): None, ord("\\"): None, ord("\n"): " "})
    lines = [
        "#!/bin/sh",
        f"#SBATCH --job-name={job_name(job.topology, request.place)}",
        f'#SBATCH --comment="{labels}"',
        "#SBATCH --no-requeue",
        f'#SBATCH --output="{str(home).replace("%", "%%")}/{request.place}.out"',
        "#SBATCH --open-mode=append",
        *(f"#SBATCH {each}" for each in limits(request, options)),
        *([f"#SBATCH {_EXCLUDE}{','.join(excluded)}"] if avoided else []),  # the last one counts
    ]
    apart = job.managers if request.place in job.managers else ()
    body = _BODY.format(
        file=shlex.quote(str(home / f"{request.place}.launch")),
        out=shlex.quote(str(home / f"{request.place}.out")),
        script=shlex.quote(str(home / f"{request.place}.sh")),
        launcher=shlex.join(replace(options, python=options.python or sys.executable).python_command(_LAUNCHER)),
        after=AFTER,
        managers=shlex.quote(",".join(job_name(job.topology, each) for each in apart)),
        excluded="".join(f",{each}" for each in excluded),
        moves="moves && exit 0" if apart else "",
        save=shlex.join(each.format(topology=job.topology) for each in options.on_warning) or "true",
        save_s=max(1, options.warn_s - math.ceil(options.end_s) - _LATE_S),
        most=_MOST_BYTES,
    )
    return "\n".join(lines) + "\n" + body


def limits(request: ContainerRequest, options: SlurmOptions) -> list[str]:
    """Return the options of ``sbatch`` that say where a container runs, and what it gets."""
    named = {"partition": options.partition, "account": options.account, "qos": options.qos, "time": options.time_limit}
    return [
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={max(1, math.ceil(request.cpu))}",
        f"--mem={request.memory_mb}",
        f"--signal=B:USR1@{options.warn_s}",
        *(f"--{name}={value}" for name, value in named.items() if value),
        *options.extra,
    ]
