"""What the driver does when a registry refuses: credentials, rights, too many requests, deletion."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest
from registry_front import Answer, Front, serving
from token_server import REFRESH_TOKEN, TokenServer

from heron.clock import wall_s
from heron.errors import PackageError
from heron_driver_kit.packages import CHUNK_BYTES, PackageName
from heron_testing.contracts.driver import in_time
from heron_testing_servers.oci_registry import OciRegistry
from heron_uploader_oci import OciUploader
from heron_uploader_oci.artifact import new_manifest
from heron_uploader_oci.oci_options import OciOptions, tls_context
from heron_uploader_oci.registry import Registry

STALL_S = 30.0  # the contract's longest time without progress


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Docker's configuration; it has none."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def refusal(options: dict[str, object], package: Path) -> str:
    with in_time(STALL_S), pytest.raises(PackageError) as caught:
        OciUploader.open(options).upload(package, "words")
    return str(caught.value)


@contextmanager
def registry_of(options: dict[str, object]) -> Iterator[tuple[Registry, list[float]]]:
    """The repository without the driver, which does not wait, and the times that it would wait."""
    waits: list[float] = []
    with Registry(OciOptions(**options), tls_context(""), waits.append) as registry:  # type: ignore[arg-type]
        yield registry, waits


def login(docker: Path, repository: object, text: str, **more: str) -> None:
    """Write what `docker login` writes."""
    host = str(repository).partition("/")[0]
    entry = {"auth": base64.b64encode(text.encode()).decode(), **more}
    (docker / "config.json").write_text(json.dumps({"auths": {host: entry}}))


def anonymous(options: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in options.items() if key not in {"username", "password"}}


def test_a_wrong_password_is_named(options: dict[str, object], package: Path, docker: Path) -> None:
    """The message says where the password comes from, and does not show it."""
    message = refusal({**options, "password": "wrong-secret"}, package)
    assert "401" in message
    assert "user 'heron' of the profile" in message
    assert "wrong-secret" not in message
    login(docker, options["repository"], "heron:wrong-secret")
    message = refusal(anonymous(options), package)
    assert "config.json" in message
    assert "wrong-secret" not in message


def test_missing_credentials_are_named(options: dict[str, object], package: Path, front: Front) -> None:
    """The remedy is a command that people know; no request is repeated for minutes."""
    message = refusal(anonymous(options), package)
    host = str(options["repository"]).partition("/")[0]
    assert f"wants credentials: `docker login {host}`, or set uploader.username" in message
    assert len(front.requests) <= 2


def test_docker_login_is_used(options: dict[str, object], package: Path, docker: Path, front: Front) -> None:
    """People sign in once for all their tools. The credentials go along from the second request on."""
    login(docker, options["repository"], f"{OciRegistry.user}:{OciRegistry.password}")
    uploader = OciUploader.open(anonymous(options))
    front.requests.clear()
    uri = uploader.upload(package, "words")
    repeated = [line for before, line in zip(front.requests, front.requests[1:], strict=False) if line == before]
    assert len(repeated) == 1
    uploader.download(uri, package.with_name("target"))


@pytest.mark.parametrize(
    ("pattern", "right", "said"),
    [
        ("POST .*/uploads/", "store (push)", "(DENIED said the test)"),
        ("PUT .*/manifests/", "store (push)", "(DENIED said the test)"),
        ("HEAD .*/blobs/", "read (pull)", ""),
    ],
)
def test_a_missing_right_is_named(
    options: dict[str, object], package: Path, front: Front, pattern: str, right: str, said: str
) -> None:
    """Who, which right, where; and what the registry says."""
    front.refuse(pattern, 403, "DENIED")
    message = refusal(options, package)
    assert "is refused: 403 Forbidden" in message
    assert said in message
    assert f"user 'heron' of the profile may not {right} in {options['repository']}" in message


def page(front: Front, pattern: str, tag: str, following: str = "") -> None:
    """Answer a request for tags with one, and the address of the next page."""
    headers = {"Link": f'<{following}>; rel="next"'} if following else {}
    front.answers[pattern] = Answer(200, headers, json.dumps({"name": "tests", "tags": [tag]}))


def test_tags_come_from_all_pages(options: dict[str, object], front: Front) -> None:
    """The registry chooses the parameters of the next page."""
    place = f"/v2/{str(options['repository']).partition('/')[2]}/tags/list"
    page(front, r"GET .*/list\?n=1000$", "words..a", f"{place}?n=1000&next_page=b")
    page(front, r"GET .*next_page=b$", "words..b", "?cursor=c")
    page(front, r"GET .*cursor=c$", "words..c")
    with registry_of(options) as (registry, _):
        assert registry.tags() == ("words..a", "words..b", "words..c")


@pytest.mark.parametrize(
    ("following", "why"),
    [
        ("?n=1000", "a page that it had already"),
        ("http://127.0.0.1:1/v2/tags?key=secret", "another server, http://127.0.0.1:1/v2/tags;"),
        ("?gone=1", "404"),
    ],
)
def test_a_part_of_the_tags_is_an_error(options: dict[str, object], front: Front, following: str, why: str) -> None:
    """`heron packages prune` would remove a package whose tag is missing in the list."""
    page(front, r"GET .*/list\?n=1000$", "words..a", following)
    front.refuse(r"GET .*\?gone=1", 404, "NAME_UNKNOWN")
    with registry_of(options) as (registry, _), pytest.raises(PackageError, match=why) as caught:
        registry.tags()
    assert "secret" not in str(caught.value)


def test_the_pages_of_tags_have_a_limit(
    options: dict[str, object], front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that always names another page does not hold a command."""
    monkeypatch.setattr("heron_uploader_oci.registry._PAGES", 2)
    page(front, r"GET .*/list\?n=1000$", "words..a", "?at=1")
    page(front, r"GET .*at=1", "words..b", "?at=2")
    page(front, r"GET .*at=2", "words..c")
    with registry_of(options) as (registry, _), pytest.raises(PackageError, match="limit of 2 pages"):
        registry.tags()


def test_no_message_has_the_query_of_a_url(options: dict[str, object], front: Front) -> None:
    """A storage puts credentials there; whoever reads a log of a command could use them."""
    registry_host = str(options["repository"]).partition("/")[0]
    storage = Front(("127.0.0.1", 1))
    storage.refuse(".*", 403)
    with serving(storage.handler) as host, registry_of(options) as (registry, _):
        front.refuse("GET .*/blobs/", 307, Location=f"http://{host}/bucket/x?X-Amz-Signature=secret")
        with pytest.raises(PackageError) as caught:
            next(registry.read_blob("sha256:" + "0" * 64))
        assert f"http://{host}/bucket/x: GET is refused: 403" in str(caught.value)
        assert "the storage that the registry redirects to refuses" in str(caught.value)
        assert "secret" not in str(caught.value)
        assert "may not" not in str(caught.value)  # the user's rights in the registry are not the cause
        front.refuse("POST .*/uploads/", 307, Location="/elsewhere?_state=secret")
        with pytest.raises(PackageError, match=f"it redirects to 'http://{registry_host}/elsewhere';") as caught:
            registry.put_blob("sha256:" + "0" * 64, 2, b"{}")
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "gopher://me:secret@127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_named(
    options: dict[str, object], package: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """The variable is often set for other programs."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    message = refusal(options, package)
    assert "the proxy in ALL_PROXY" in message
    assert "NO_PROXY" in message
    assert "secret" not in message


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_nothing_goes_from_https_to_http(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Behind a proxy, many registries do not know that they are asked over https."""
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        status = 202 if request.method == "POST" else 307
        return httpx.Response(status, headers={"Location": "http://other.example.org/place?key=secret"})

    client = partial(httpx.Client, transport=httpx.MockTransport(answer))
    monkeypatch.setattr("heron_uploader_oci.registry.httpx.Client", client)
    digest = "sha256:" + "0" * 64
    secure = {**options, "plain_http": False}
    with registry_of(secure) as (registry, _), pytest.raises(PackageError, match="which is not https") as caught:
        registry.put_blob(digest, 2, b"{}") if method == "POST" else next(registry.read_blob(digest))
    assert "secret" not in str(caught.value)
    assert [each.scheme for each in asked] == ["https"]


def test_progress_never_decreases(options: dict[str, object], package: Path, front: Front) -> None:
    """A layer that is sent twice is no step back for a bar."""
    package.write_bytes(secrets.token_bytes(300_000))
    front.refuse("PUT .*/uploads/", 503, times=1, Retry_After="0")
    uploader, moved = OciUploader.open(options), list[int]()
    uploader.follow(lambda bytes_moved, _: moved.append(bytes_moved))
    uploader.upload(package, "words")
    assert len(moved) > len(set(moved)) > 1
    assert moved == sorted(moved)
    assert moved[-1] == 300_000


def test_a_short_wait_is_kept(options: dict[str, object], front: Front) -> None:
    """Registries ask clients to wait when many containers start at once."""
    front.refuse("POST .*/uploads/", 429, "TOOMANYREQUESTS", times=2, Retry_After="1")
    front.refuse("PUT .*/manifests/", 503, times=1, Retry_After="0")
    with registry_of(options) as (registry, waits):
        registry.put_blob(f"sha256:{hashlib.sha256(b'{}').hexdigest()}", 2, b"{}")
        registry.put_manifest("words..live", new_manifest(PackageName("words", "0" * 64), (), 0.0))
    assert waits == [1.0, 1.0, 0.1]
    assert front.requests[-1].startswith("PUT")


def test_a_blob_that_the_registry_does_not_see_yet_is_waited_for(
    options: dict[str, object], package: Path, front: Front
) -> None:
    """It happens when two commands store the same content at once; a blob that stays unknown is an error."""
    front.refuse("PUT .*/manifests/", 400, "MANIFEST_BLOB_UNKNOWN", times=2)
    uploader = OciUploader.open(options)
    uploader.download(uploader.upload(package, "words"), package.with_name("target"))
    front.refuse("PUT .*/manifests/", 400, "MANIFEST_BLOB_UNKNOWN")
    with registry_of(options) as (registry, waits), pytest.raises(PackageError, match="MANIFEST_BLOB_UNKNOWN"):
        registry.put_manifest("words..live", b"{}")
    assert waits == [0.1, 0.4, 1.6]


@pytest.mark.parametrize(
    ("retry_after", "said"),
    [("120", "asks to wait 120 s"), ("", "names no time"), ("soon", "names no time"), ("date", "asks to wait")],
)
def test_a_long_wait_is_an_error(
    options: dict[str, object], package: Path, front: Front, retry_after: str, said: str
) -> None:
    """A command does not hang; the message has both times."""
    if retry_after == "date":
        retry_after = formatdate(wall_s() + 3600, usegmt=True)
    front.refuse("POST .*/uploads/", 429, Retry_After=retry_after)
    message = refusal(options, package)
    assert "429" in message
    assert said in message
    assert "the limit here is 5 s" in message


def test_always_a_short_wait_ends(options: dict[str, object], package: Path, front: Front) -> None:
    """A registry that always says 0 seconds does not hold a command."""
    front.refuse("POST .*/uploads/", 429, Retry_After="0")
    assert "asks to wait 0 s" in refusal(options, package)
    with registry_of(options) as (registry, waits), pytest.raises(PackageError, match="429"):
        registry.put_blob("sha256:" + "0" * 64, 2, b"{}")
    assert waits == [0.1, 0.1, 0.1]


def test_slow_refusals_are_not_repeated(
    options: dict[str, object], front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All repetitions end within the contract's time, however long each answer takes."""
    front.refuse("POST .*/uploads/", 503, Retry_After="1")
    with registry_of(options) as (registry, waits):
        times = iter(range(0, 1000, 11))
        monkeypatch.setattr("heron_uploader_oci.registry_transport.monotonic_s", lambda: float(next(times)))
        with pytest.raises(PackageError, match="503"):
            registry.put_blob("sha256:" + "0" * 64, 2, b"{}")
    assert waits == []


class Endless(BaseHTTPRequestHandler):
    """Answers each request with spaces, and never ends."""

    def do_GET(self) -> None:
        self.send_response_only(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" " * CHUNK_BYTES)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_an_answer_without_end_is_an_error(options: dict[str, object]) -> None:
    """Neither the memory nor the time of a command is the server's choice."""
    with serving(Endless) as host, in_time(STALL_S):
        endless = {**options, "repository": f"{host}/tests/words"}
        with pytest.raises(PackageError, match="not a list of tags"):
            OciUploader.open(endless).packages()
        with registry_of(endless) as (registry, _), pytest.raises(PackageError, match="larger than the limit"):
            registry.manifest("words..live")


def test_a_check_has_one_time_for_all(
    options: dict[str, object], docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of `heron profiles check` includes a credential helper."""
    helper = docker / "docker-credential-slow"
    helper.write_text("#!/bin/sh\nexec sleep 60\n")
    helper.chmod(0o700)
    (docker / "config.json").write_text(json.dumps({"credsStore": "slow"}))
    monkeypatch.setenv("PATH", str(docker), prepend=os.pathsep)
    with in_time(5.0), pytest.raises(PackageError, match=r"docker-credential-slow does not answer within 0\.\d+ s"):
        OciUploader.open(anonymous(options)).check(1.0)


def test_a_registry_without_deletion_is_named(tmp_path: Path, oci_registry: OciRegistry, package: Path) -> None:
    """The end of a topology removes its package; the message has both remedies, and one of them works."""
    del oci_registry  # it only shows that a registry is installed
    (tmp_path / "kept").mkdir()
    server = OciRegistry(tmp_path / "kept", delete=False)
    server.start()
    try:
        place = {"repository": f"{server.host}/heron", "plain_http": True}
        options = {**place, "username": server.user, "password": server.password}
        uploader = OciUploader.open(options)
        uri = uploader.upload(package, "words")
        with pytest.raises(PackageError, match=r"405.*storage.delete.enabled.*uploader.delete: false"):
            uploader.undo(uri)
        OciUploader.open({**options, "delete": False}).undo(uri)
        assert [each.uri for each in uploader.packages()] == [uri]
    finally:
        server.kill()


def test_a_tag_is_removed_without_the_right_to_delete(options: dict[str, object], package: Path, front: Front) -> None:
    """What is left of the tag in the registry is no tag: it keeps nothing, and its name is not found."""
    uploader = OciUploader.open(options)
    uri = uploader.upload(package, "words")
    for tag in ("live", "v1", "v2"):
        uploader.tag(uri, tag)
    front.refuse("DELETE .*/manifests/", 405)
    with pytest.raises(PackageError, match=r"405.*uploader.delete: false"):
        uploader.untag("words", "live")
    OciUploader.open({**options, "delete": False}).untag("words", "v1")
    uploader.untag("words", "live")  # as a missing tag
    for tag in ("live", "v1"):
        with pytest.raises(PackageError, match=f"words:{tag}: not found in .*; its tags are latest, v2$"):
            uploader.tagged("words", tag)
    assert [each.tags for each in uploader.packages()] == [("latest", "v2")]
    uploader.tag(uri, "live")
    assert uploader.tagged("words", "live").uri == uri


@pytest.fixture(scope="module")
def token_server(tmp_path_factory: pytest.TempPathFactory, oci_registry: OciRegistry) -> Iterator[TokenServer]:
    """A registry that asks for tokens, and the server that gives them."""
    del oci_registry
    server = TokenServer(tmp_path_factory.mktemp("tokens"))
    server.start()
    yield server
    server.close()


def test_a_token_is_got_for_each_right(token_server: TokenServer, package: Path) -> None:
    """As on Docker Hub, GitHub, GitLab and Harbor."""
    options = {**token_server.options, "username": "writer", "password": token_server.password}
    uploader = OciUploader.open(options)
    uri = uploader.upload(package, "words")
    uploader.tag(uri, "live")
    uploader.untag("words", "live")
    uploader.download(uri, package.with_name("target"))
    assert "user 'writer' of the profile: may store" in uploader.check(10.0)
    uploader.undo(uri)
    assert uploader.packages() == ()
    assert {right for scope in token_server.scopes for right in scope.rpartition(":")[2].split(",")} >= {
        "pull", "push", "delete",
    }  # fmt: skip


def test_a_token_without_the_right_is_named(token_server: TokenServer, package: Path) -> None:
    """Such a registry answers 401 for a missing right too, and the token was new."""
    writer = {**token_server.options, "username": "writer", "password": token_server.password}
    uri = OciUploader.open(writer).upload(package, "words")
    reader = {**token_server.options, "username": "reader", "password": token_server.password}
    uploader = OciUploader.open(reader)
    uploader.download(uri, package.with_name("target"))
    assert "may only read, so `heron submit` needs --package" in uploader.check(10.0)
    package.write_bytes(b"other")
    message = refusal(reader, package)
    assert "user 'reader' of the profile, or it may not store (push)" in message


def test_an_identity_token_is_exchanged(token_server: TokenServer, package: Path, docker: Path) -> None:
    """It goes in the body of a POST, and never to the registry."""
    login(docker, token_server.options["repository"], "me:", identitytoken=REFRESH_TOKEN)
    uploader = OciUploader.open(token_server.options)
    uploader.download(uploader.upload(package, "words"), package.with_name("target"))
    assert token_server.refreshed


def test_a_token_server_that_refuses_is_named(token_server: TokenServer, package: Path) -> None:
    """It is another server than the registry."""
    message = refusal({**token_server.options, "username": "writer", "password": "wrong-secret"}, package)
    assert "token server 127.0.0.1: refuses user 'writer' of the profile: 401" in message
    assert "wrong-secret" not in message


def test_credentials_go_to_no_other_server_in_clear(options: dict[str, object], package: Path, front: Front) -> None:
    """Whoever answers for the registry names the token server."""
    front.refuse(".*", 401, WWW_Authenticate='Bearer realm="ftp://127.0.0.1/token"')
    message = refusal(options, package)
    assert "is not https; nothing was sent" in message


def test_a_profile_is_checked(options: dict[str, object], front: Front) -> None:
    """`heron profiles check` shows the address, the credentials and the right, and stores nothing."""
    uploader = OciUploader.open(options)
    host, _, path = str(options["repository"]).partition("/")
    assert uploader.check(10.0) == f"registry {host}, repository {path}, user 'heron' of the profile: may store"
    assert uploader.packages() == ()
    front.refuse("POST", 403, "DENIED")
    assert uploader.check(10.0).endswith("may only read, so `heron submit` needs --package")
    front.refuse("GET /v2/$", 404)
    with pytest.raises(PackageError, match=r"404.*check uploader.repository"):
        uploader.check(10.0)
