"""The keys of a topology on YARN and the passwords of its drivers: what other users of the cluster may see."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from secret_places import check_holders, files_with, secrets_of, shown_by

from heron_testing.heron_run import processes_of
from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.yarn_services import YarnServices
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S
from yarn_place import YarnPlace, fresh_place

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HOLDERS = {"tmanager.json", "stmgr.json", "metricsmgr.json"}


@pytest.fixture
def place(sandbox: Sandbox, hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[YarnPlace]:
    """All nodes, without a service."""
    with fresh_place(sandbox, hdfs, yarn_services) as place:
        yield place


def test_yarn_shows_no_secret(place: YarnPlace, zookeeper: ZooKeeperServer, s3: S3Server) -> None:
    """With the shipped profile: services, processes, logs, and the files of YARN, of HDFS and of Heron."""
    commands = place.use_servers(zookeeper, s3)
    run = commands.submit("steady.py")
    wait_until((run.out / "progress").exists, BACK_S, "the first counts")
    secrets = secrets_of(commands, "steady")
    (application,) = json.loads(_read(f"{place.yarn.url}/ws/v1/cluster/apps?states=RUNNING"))["apps"]["app"]
    service = f"{place.yarn.url}/app/v1/services/{application['name']}?"
    assert _refused(service) == HTTPStatus.NOT_FOUND
    service = _read(service, user="root")  # YARN believes every name
    assert service.count("launch_command") >= 3
    files = {**place.files("/heron/jobs"), **place.files("/user/root/.yarn/services")}
    private = {path: mode for path, mode in files.items() if path.endswith(".launch")}
    others = [_read(_content(place, path), user="root") for path in files.keys() - private.keys()]
    shown = [json.dumps(application), service, commands.output_of("logs", "steady"), run.all_output, *others]
    assert [each for each in shown if any(secret in each for secret in secrets)] == []
    assert shown_by(secrets, processes_of(place.sandbox.home)) == []
    check_holders(secrets, place.sandbox.tmp, _HOLDERS)
    assert files_with(secrets, place.sandbox.home) == []
    copies = []
    for node in place.yarn.folders.values():
        assert files_with(secrets, node / "logs") == [], "they are pages of the node manager"
        copies += [(each, _is_shut(each, node)) for each in files_with(secrets, node / "local")]
    assert len(copies) >= 3, copies  # of each container, and a link to it
    assert [each for each, shut in copies if not shut] == []
    assert list(private.values()) == ["600"] * 3, private
    assert {_refused(_content(place, each)) for each in private} == {HTTPStatus.FORBIDDEN}
    commands.output_of("kill", "steady")
    place.leaves_nothing()
    assert [each for folder in (place.sandbox.tmp, place.sandbox.home) for each in files_with(secrets, folder)] == []


def _content(place: YarnPlace, path: str) -> str:
    """Return the URL of the content of a file of HDFS."""
    return f"{place.hdfs.url}/webhdfs/v1{path}?op=OPEN"


def _read(url: str, user: str = "somebody") -> str:
    """Return an answer to a user."""
    with urllib.request.urlopen(f"{url}&user.name={user}") as answer:  # noqa: S310 - the server of the test
        text: str = answer.read().decode(errors="replace")  # one is a library
        return text


def _refused(url: str) -> int:
    """Return the code with which another user is refused."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        _read(url)
    refused.value.close()
    return refused.value.code


def _is_shut(path: Path, root: Path) -> bool:
    """Return whether other users of the machine cannot read a file: it, or a folder below `root`, is closed to them."""
    chain = [each for each in (path, *path.parents) if root in each.parents]
    return not path.stat().st_mode & 0o004 or any(not each.stat().st_mode & 0o001 for each in chain[1:])
