"""Runs with packages on a real S3 server or web server that stops and returns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
import pytest

from flowing import flows
from heron_testing_servers.nginx import NginxServer
from heron_testing_servers.s3 import S3Server

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

    Store = tuple[S3Server | NginxServer, str]

_PASSWORDS = (S3Server.secret_key, NginxServer.password)


@pytest.fixture(params=["s3", "http"])
def store(request: pytest.FixtureRequest, s3: S3Server, nginx: NginxServer) -> Store:
    """A server and its section of a profile; tests request both, so that the mark is set."""
    if request.param == "http":
        return nginx, f"driver: http, url: '{nginx.url}', username: {nginx.user}, password: '${{env:STORE_PASSWORD}}'"
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    boto3.client("s3", endpoint_url=s3.url, **keys).create_bucket(Bucket="topologies")
    options = f"bucket: topologies, endpoint_url: '{s3.url}', region: {s3.region}, access_key_id: {s3.access_key}"
    return s3, f"driver: s3, {options}, secret_access_key: '${{env:STORE_PASSWORD}}'"


def test_a_lost_container_waits_for_its_package_while_data_flows_on(
    sandbox: Sandbox, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a starting container needs its package; it retries until the server is back."""
    server, options = store
    monkeypatch.setenv("STORE_PASSWORD", server.secret_key if isinstance(server, S3Server) else server.password)
    here = sandbox.write_profile("shop", f"extends: local\nuploader: {{{options}}}\n")
    run = sandbox.start("steady.py", *here)
    flows(run, "at the start")
    (stored,) = json.loads(sandbox.output_of("packages", "list", *here, "--json"))
    assert (stored["name"], stored["topology"], stored["whole"]) == ("steady", "steady", True)
    pruned = sandbox.output_of("packages", "prune", "--older-than", "0", *here)
    assert pruned == "0 packages removed, 0 B\n"
    server.kill()
    try:
        flows(run, "while the packages are away")
        executor = run.the("executor", "c2")
        executor.kill()
        run.until(lambda: "container 2: exit code 1" in run.stderr and "answer" in run.stderr, "a failed download")
    finally:
        server.start()
    run.until(lambda: any(each.pid != executor.pid for each in run.processes("stmgr", "c2")), "container 2 again")
    flows(run, "after the return")
    (run.out / "stop").touch()
    run.finished()
    assert sandbox.output_of("packages", "list", *here) == "0 packages, 0 B\n"
    output = sandbox.log_text() + run.all_output
    assert not any(each in output for each in _PASSWORDS)
