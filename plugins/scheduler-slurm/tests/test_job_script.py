"""The batch script of a container, with commands in place of Slurm's and a launcher that waits."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_slurm.job_script import job_script, limits
from heron_scheduler_slurm.options import SlurmOptions
from heron_testing.waiting import wait_until

JOB = ManagedJob("words", "words-1", owner="ann", role="ads", env='pr"od\nx')
REQUEST = ContainerRequest(3, "3", 1.1, 512)
_FAKE = '#!/bin/sh\necho "$(basename "$0") $*" >> {folder}/calls\n'
_LAUNCHER = """#!/bin/sh
trap 'echo ended >> {folder}/calls; exit' TERM
echo "launcher $*" >> {folder}/calls
while :; do sleep 0.05; done
"""
_LIMIT_S = 20.0
_GONE_S = 5.0  # the script looks at its output every 20 s


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return a function that runs the script of a container as Slurm does."""
    folder = tmp_path / "job of words"  # names are quoted
    folder.mkdir()
    for name, program in {"sbatch": _FAKE, "scontrol": _FAKE, "launcher": _LAUNCHER, "save": _FAKE}.items():
        (tmp_path / name).write_text(program.format(folder=tmp_path))
        (tmp_path / name).chmod(0o700)
    started: list[subprocess.Popen[bytes]] = []

    def run(**options: object) -> subprocess.Popen[bytes]:
        (folder / "3.launch").touch()
        (folder / "3.out").touch()
        chosen = SlurmOptions(**{"python": str(tmp_path / "launcher"), **options})  # type: ignore[arg-type] # by test
        script = job_script(JOB, REQUEST, folder, chosen)
        path = f"{tmp_path}:{os.environ['PATH']}"
        environment = {"PATH": path, "SLURM_JOB_ID": "77", "SLURMD_NODENAME": "n1"}
        process = subprocess.Popen(["sh", "-c", script], env=environment, process_group=0)
        started.append(process)
        calls = tmp_path / "calls"
        for begins in ("launcher ", "sbatch "):
            wait_until(lambda b=begins: calls.exists() and b in calls.read_text(), _LIMIT_S, begins)  # type: ignore[misc]
        return process

    yield run
    for each in started:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def test_the_head_names_owner_and_container_without_secrets() -> None:
    """A person finds the container in ``squeue``, and no text of a user becomes a line of the script."""
    script = job_script(JOB, REQUEST, Path("/shared/words"), SlurmOptions(partition="ib", time_limit="1-00:00:00"))
    head = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert "#SBATCH --job-name=heron.words.3" in head
    comment = "heron topology=words container=3 run=words-1 owner=ann role=ads env=prod x"
    assert f'#SBATCH --comment="{comment}"' in head
    assert {"#SBATCH --partition=ib", "#SBATCH --time=1-00:00:00", "#SBATCH --mem=512"} <= set(head)
    assert "#SBATCH --cpus-per-task=2" in head, "Slurm has whole cores, and the container needs more than one"


def test_options_without_a_value_are_left_to_the_site() -> None:
    """An empty partition would be refused."""
    assert not [each for each in limits(REQUEST, SlurmOptions()) if each.startswith(("--partition", "--qos", "--time"))]


@pytest.mark.parametrize("line", ["--output=/tmp/x", "--no-requeue", "--time=5", "--x\n#SBATCH --wrap=evil", "evil"])
def test_extra_options_that_would_break_a_container_are_refused(line: str) -> None:
    """Another output or a requeue would take the job from the scheduler."""
    with pytest.raises(ConfigError, match="extra"):
        decode_options({"extra": [line]}, SlurmOptions, "scheduler")
    assert decode_options({"extra": ["--constraint=ib", "--mem-bind=local"]}, SlurmOptions, "scheduler").extra


def test_a_job_that_slurm_ends_has_a_successor(start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """The successor waits for a failure: the code 75 starts it, and the executor has ended in order before."""
    process = start()
    process.send_signal(signal.SIGTERM)
    assert process.wait(_LIMIT_S) == 75
    calls = (tmp_path / "calls").read_text()
    script = tmp_path / "job of words" / "3.sh"
    assert f"sbatch --parsable --dependency=afternotok:77 --kill-on-invalid-dep=yes {script}\n" in calls
    assert calls.count("ended") == 1
    wait_until(lambda: not _group_runs(process.pid), _GONE_S, "no process of the script is left on the node")


def test_a_job_that_heron_ends_has_none(start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """With exit code 0 Slurm drops the successor."""
    process = start()
    (tmp_path / "job of words" / "3.launch").unlink()
    process.send_signal(signal.SIGTERM)
    assert process.wait(_LIMIT_S) == 0


def test_a_warned_container_saves_before_it_ends(start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """The command has the state of the topology as it runs; afterwards the next job takes over."""
    process = start(on_warning=("save", "checkpoint of {topology}"))
    process.send_signal(signal.SIGUSR1)
    assert process.wait(_LIMIT_S) == 75
    calls = (tmp_path / "calls").read_text()
    assert calls.index("save checkpoint of words\n") < calls.index("ended")


def test_a_launcher_that_dies_starts_again(start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """The node is good, so the container stays there."""
    process = start()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    names = {int(each): Path(f"/proc/{each}/cmdline").read_bytes() for each in children}
    (launcher,) = (pid for pid, name in names.items() if b"/launcher" in name.split(b"\0")[1])
    os.kill(launcher, signal.SIGKILL)
    wait_until(lambda: (tmp_path / "calls").read_text().count("launcher ") == 2, _LIMIT_S, "a second launcher")
    assert process.poll() is None


_QUEUE = """#!/bin/sh
echo "squeue $*" >> {folder}/calls
case "$*" in *PENDING*) echo {waits} ;; *-w*%A) echo {first} ;; *%N) echo n1 ;; esac
"""
_SBATCH = """#!/bin/sh
echo "sbatch $*" >> {folder}/calls
echo 80
"""


@pytest.mark.parametrize(
    ("first", "waits", "calls"),
    [
        ("76", "", ["sbatch --parsable --exclude=n1,n8"]),
        ("77", "", []),
        ("76", "80", ["sbatch --parsable --exclude=n1,n8", "scancel --state=PENDING 80"]),
    ],
    ids=["another-one-is-there", "it-was-there-first", "no-other-node-is-free"],
)
def test_a_topology_manager_leaves_the_node_of_another_one(
    tmp_path: Path, first: str, waits: str, calls: list[str]
) -> None:
    """Standbys must not be lost together. A container must not wait long for another node."""
    programs = {"squeue": _QUEUE, "sbatch": _SBATCH, "scancel": _FAKE, "sleep": "#!/bin/sh\n"}
    for name, program in programs.items():
        (tmp_path / name).write_text(program.format(folder=tmp_path, first=first, waits=waits))
        (tmp_path / name).chmod(0o700)
    job = ManagedJob("words", "words-1", containers=(ContainerRequest(0, "0", 1, 1), REQUEST), standbys=1)
    script = job_script(job, REQUEST, tmp_path, SlurmOptions(python="true", extra=("--exclude=n8",)))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "77", "SLURMD_NODENAME": "n1"}
    (tmp_path / "3.out").touch()
    ended = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, timeout=_LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    made = (tmp_path / "calls").read_text().splitlines()
    assert "-n heron.words.0,heron.words.3 -t RUNNING -w n1" in made[0]
    changes = [each.removesuffix(f" {tmp_path}/3.sh") for each in made if not each.startswith("squeue")]
    assert changes[: len(calls)] == calls
    assert len(changes) == len(calls)


def _group_runs(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_container_keeps_away_from_blocked_nodes(tmp_path: Path) -> None:
    """Slurm takes the last line of an option, so the nodes of the profile are in it too; successors read it again."""
    options = SlurmOptions(extra=("--exclude=n9",))
    script = job_script(JOB, REQUEST, tmp_path, options, {"n2", "n1"})
    assert [each for each in script.splitlines() if "SBATCH --exclude" in each] == [
        "#SBATCH --exclude=n9",
        "#SBATCH --exclude=n9,n1,n2",
    ]
    assert "--exclude" not in job_script(JOB, REQUEST, tmp_path, SlurmOptions(), ()).partition("file=")[0]
