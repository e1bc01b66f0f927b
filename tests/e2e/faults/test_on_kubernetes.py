"""Topologies on a real Kubernetes whose nodes run Pods as processes, with the rights of the README alone."""

from __future__ import annotations

import contextlib
import functools
import secrets
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from heron.spi.statemgr import NodeKind
from heron_scheduler_kubernetes.access_rules import NEEDED
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.kubernetes import KubernetesServer
from line_journal import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "kube")
_START_S = 90.0
_STATUS_S = 10.0
_PROFILE = """\
extends: local
scheduler: {{driver: kubernetes, image: {image}, python: {python}, kubeconfig: {kubeconfig}, stop_grace_s: 3}}
"""
_LINE = Counter(["the", "quick", "brown", "fox", "and", "the", "lazy", "dog"])
_RULES = [
    {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]} for (group, resource), verbs in NEEDED.items()
]


@pytest.fixture
def namespace(kubernetes: KubernetesServer) -> Iterator[str]:
    """A namespace for one test, in which the user has the rights of the README."""
    kubernetes.start()
    name = f"heron-{secrets.token_hex(4)}"
    kubernetes.make_namespace(name, _RULES)
    yield name
    kubernetes.start()
    kubernetes.remove_namespace(name)


def _profile(sandbox: Sandbox, kubernetes: KubernetesServer, namespace: str, image: str = "here") -> None:
    kubeconfig = kubernetes.kubeconfig("user", namespace)
    sandbox.write_profile("kube", _PROFILE.format(image=image, python=sys.executable, kubeconfig=kubeconfig))


def _counted(run: HeronRun) -> int:
    return sum(int(path.read_text(encoding="utf-8") or 0) for path in run.out.glob("progress-*"))


def _words(sandbox: Sandbox) -> HeronRun:
    run = sandbox.start("steady_words.py", command="submit kube/ads/prod")
    assert run.wait() == 0, run.all_output
    wait_until_grown(functools.partial(_counted, run), _START_S, "words are counted")
    return run


def _ends(sandbox: Sandbox, run: HeronRun, name: str) -> None:
    (run.out / "stop").touch()
    wait_until(lambda: '"state": "finished"' in sandbox.output_of("list", "kube", "--json"), _START_S, f"{name} ends")


def _leaves_nothing(sandbox: Sandbox, kubernetes: KubernetesServer, namespace: str) -> None:
    wait_until(lambda: not kubernetes.pods(namespace), _START_S, "all Pods are gone")
    for kind in ("api/v1", "services"), ("api/v1", "secrets"), ("apis/apps/v1", "statefulsets"):
        assert kubernetes.request("GET", f"/{kind[0]}/namespaces/{namespace}/{kind[1]}")["items"] == []
    state = LocalFsStateManager.open({"root": str(sandbox.home / ".heron" / "state")})
    left = [kind for kind in NodeKind if state.list(kind)]
    state.close()
    assert left in ([], [NodeKind.REPORT])


def test_words_are_counted_exactly_while_the_api_server_is_away(
    sandbox: Sandbox, kubernetes: KubernetesServer, namespace: str
) -> None:
    """The API server is not on the path of tuples; commands say that it is away, and work again afterwards."""
    _profile(sandbox, kubernetes, namespace)
    run = _words(sandbox)
    status = sandbox.output_of("status", "steady_words", *_HERE)
    assert "node-" in status
    assert len(kubernetes.pods(namespace)) == 3
    assert "tmanager" in sandbox.output_of("logs", "steady_words", *_HERE)
    kubernetes.api.kill()
    wait_until_grown(functools.partial(_counted, run), _START_S, "words are counted without the API server")
    assert "does not answer" in sandbox.output_of("restart", "steady_words", "1", *_HERE, code=1)
    kubernetes.start()
    _ends(sandbox, run, "steady_words")
    (((lines,),),) = run.results("lines").values()
    counted = Counter[str]()
    for rows in run.results("count").values():
        counted.update({str(word): int(str(count)) for word, count in rows})
    assert counted == {word: count * int(str(lines)) for word, count in _LINE.items()}
    _leaves_nothing(sandbox, kubernetes, namespace)


def test_no_line_is_lost_when_pods_are_evicted_deleted_and_updated(
    sandbox: Sandbox, kubernetes: KubernetesServer, namespace: str
) -> None:
    """At least once: a drain of both nodes, one after the other, and an update 2 -> 4 -> 2."""
    _profile(sandbox, kubernetes, namespace)
    lines = Lines(sandbox, command="submit kube")
    assert lines.run.wait() == 0, lines.run.all_output

    def flow(what: str) -> None:
        wait_until_grown(lines.acked_bytes, _START_S, f"lines after {what}")

    flow("the start")
    for pod in sorted(kubernetes.pods(namespace)):
        kubernetes.evict(namespace, pod)
        flow(f"the eviction of {pod}")
    for count in (4, 2):
        sandbox.heron("update", "journal", *_HERE, "--container-number", str(count), "--timeout", "80")
        flow(f"the update to {count} containers")
    lines.let_go()
    _ends(sandbox, lines.run, "journal")
    lines.check()
    _leaves_nothing(sandbox, kubernetes, namespace)


def test_a_missing_image_is_told_in_the_words_of_kubernetes(
    sandbox: Sandbox, kubernetes: KubernetesServer, namespace: str
) -> None:
    """Within ten seconds; the topology manager does not run, so only the scheduler can tell."""
    _profile(sandbox, kubernetes, namespace, image="missing:1")
    run = sandbox.start("steady_words.py", command="submit kube")
    assert run.wait() == 0, run.all_output

    def told() -> bool:
        with contextlib.suppress(AssertionError):
            return "no such image: missing:1" in sandbox.output_of("status", "steady_words", *_HERE, code=1)
        return False

    wait_until(told, _STATUS_S, "the reason is shown")
    sandbox.heron("kill", "steady_words", *_HERE)
    _leaves_nothing(sandbox, kubernetes, namespace)
