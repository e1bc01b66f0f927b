"""Calls of AWS: throttling, pages, and refusals with the key to correct."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from heron.clock import monotonic_s
from heron.errors import ConfigError, SchedulerError
from heron.spi.options import decode_options
from heron_scheduler_ecs.ecs_api import EcsApi
from heron_scheduler_ecs.options import EcsOptions

_Answer = tuple[int, dict[str, object]]
_THROTTLED: _Answer = (400, {"__type": "ThrottlingException", "message": "Rate exceeded"})


class _Aws(BaseHTTPRequestHandler):
    """Answers with `answer`, and keeps the requests."""

    answer: ClassVar[Callable[[str, dict[str, object]], _Answer]]
    asked: ClassVar[list[dict[str, object]]]
    url: ClassVar[str]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        status, answer = type(self).answer(self.headers["X-Amz-Target"].rpartition(".")[2], body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *args: object) -> None:
        del args


@pytest.fixture
def aws() -> Iterator[type[_Aws]]:
    class Handler(_Aws):
        asked: ClassVar[list[dict[str, object]]] = []

    handler = Handler
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        handler.url = f"http://127.0.0.1:{server.server_port}"
        yield handler
        server.shutdown()
        thread.join()


def _api(url: str, **access: str) -> EcsApi:
    keys = {"region": "eu-west-1", "access_key_id": "a", "secret_access_key": "hidden-key", **access}
    options = {
        "aws": {"bucket": "b", "endpoint_url": url, **keys},
        "cluster": "c",
        "image": "i",
        "execution_role": "r",
        "subnets": ["s"],
    }
    return EcsApi(decode_options(options, EcsOptions, "scheduler"))


def test_a_throttled_request_is_repeated(aws: type[_Aws]) -> None:
    """ECS throttles all users of an account together, so a single refusal means nothing."""
    answers: Iterator[_Answer] = iter(
        [_THROTTLED, _THROTTLED, (200, {"clusters": [{"clusterName": "c", "status": "ACTIVE"}]})]
    )
    aws.answer = lambda operation, body: next(answers)
    _api(aws.url).check()
    assert len(aws.asked) == 3


def test_a_request_that_stays_throttled_ends_in_time(aws: type[_Aws], monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a cluster takes 5 s at most; here the limit is shorter."""
    monkeypatch.setattr("heron_s3_kit.aws_api._CALL_S", 0.5)
    aws.answer = lambda operation, body: _THROTTLED
    begin_s = monotonic_s()
    with pytest.raises(SchedulerError, match=r"ThrottlingException \(Rate exceeded\).*try again later"):
        _api(aws.url).check()
    assert monotonic_s() - begin_s < 4.0
    assert len(aws.asked) > 1


def test_all_pages_are_read(aws: type[_Aws]) -> None:
    """A cluster has more services than one page, and ECS describes ten of them at once."""
    names = [f"s{number}" for number in range(230)]

    def answer(operation: str, body: dict[str, object]) -> _Answer:
        if operation == "DescribeServices":
            asked = body["services"]
            assert isinstance(asked, list)
            assert len(asked) <= 10
            return 200, {"services": [{"serviceName": each} for each in asked]}
        begin, size = int(str(body.get("nextToken", 0))), int(str(body["maxResults"]))
        more = {"nextToken": str(begin + size)} if begin + size < len(names) else {}
        return 200, {"serviceArns": names[begin : begin + size], **more}

    aws.answer = answer
    api = _api(aws.url)
    assert api.listed("ecs", "list_services", "serviceArns", api.named) == names
    assert len(aws.asked) == 3
    assert list(api.services(names)) == names


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("UnrecognizedClientException", "check scheduler.aws.access_key_id and scheduler.aws.secret_access_key"),
        ("InvalidSignatureException", "the secret key is wrong"),
        ("ExpiredTokenException", "get a new session token"),
        ("AccessDeniedException", "allow this user the policy in the README"),
        ("ClusterNotFoundException", "correct scheduler.cluster or scheduler.aws.region"),
        ("LimitExceededException", "raise the quota"),
        ("InvalidParameterException", "correct the section scheduler of the profile"),
    ],
)
def test_a_refusal_has_the_words_of_aws_and_what_helps(aws: type[_Aws], code: str, said: str) -> None:
    """And never the secret key."""
    aws.answer = lambda operation, body: (400, {"__type": code, "message": "The words of AWS."})
    with pytest.raises(
        SchedulerError, match=rf"ECS cluster c in eu-west-1: .*{code} \(The words of AWS\); .*{said}"
    ) as caught:
        _api(aws.url).check()
    assert "hidden-key" not in str(caught.value)


def test_a_missing_cluster_or_region_is_named(aws: type[_Aws], monkeypatch: pytest.MonkeyPatch) -> None:
    """ECS answers with an empty list; a wrong region has the same effect."""
    aws.answer = lambda operation, body: (200, {"clusters": [], "failures": [{"reason": "MISSING"}]})
    with pytest.raises(SchedulerError, match=r"ECS cluster c in eu-west-1 is MISSING; correct scheduler\.cluster or"):
        _api(aws.url).check()
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    with pytest.raises(ConfigError, match=r"scheduler\.aws: boto3 refuses the options: You must specify a region"):
        _api(aws.url, region="").check()


def test_no_answer_names_the_address(aws: type[_Aws]) -> None:
    """A region that does not exist has no server."""
    assert aws.asked == []
    with pytest.raises(SchedulerError, match=r"gets no answer: .*; check .*scheduler\.aws\.region"):
        _api("http://127.0.0.1:9").check()
