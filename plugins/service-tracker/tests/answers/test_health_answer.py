"""The decisions of the health manager, the explanation, and the pages of the scheduler."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest

from heron.spi.health_values import Action, ActionKind, Decision, DecisionState, Diagnosis, Subject
from heron.spi.scheduler import JobLink
from heron_cli.client import HealthRecords
from heron_service_tracker.answers.answers import TopologyAnswer
from heron_service_tracker.answers.health_answer import HealthDecisionsAnswer
from heron_service_tracker.calls import explain_command
from heron_service_tracker.calls.explain_command import ExplainCommand, ExplanationAnswer
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.request_errors import NotYetKnownError
from heron_service_tracker.watches.observations import Observations

WORDS = "/api/v1/clusters/near/topologies/words"
SLOW = Diagnosis("slow-task", Subject("count", 2), 0.9, ("count/2 is busy 98 % of the time", "its host is idle"))
GROW = Action(ActionKind.UPDATE, "4 tasks for count", "heron update words count=4", {"count": 4}, {"count": 2})
ADVICE = Decision(1, 1000.0, "ds2", SLOW, GROW, DecisionState.ADVISED, "the mode is advise")


def get(observations: Observations, path: str, questions: Questions | None = None) -> httpx.Response:
    """Ask once."""

    async def ask() -> httpx.Response:
        access = Access(Address("127.0.0.1", 8888))
        app = application(observations, access, asyncio.Event(), questions=questions)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as client:
            return await client.get(WORDS + path)

    return asyncio.run(ask())


def decisions(observations: Observations, query: str = "") -> HealthDecisionsAnswer:
    """The answer about the decisions."""
    return msgspec.json.decode(get(observations, f"/health{query}").content, type=HealthDecisionsAnswer)


def test_a_topology_without_a_health_manager_has_no_decisions(observations: Observations) -> None:
    """The mode says so; an error would hide that nothing is wrong."""
    answer = decisions(observations)
    assert (answer.mode, answer.items, answer.total) == ("", (), 0)


def test_decisions_have_their_cause_evidence_and_reason(observations: Observations) -> None:
    """The newest comes first, because a person asks what happens now."""
    undone = replace(ADVICE, number=2, state=DecisionState.INEFFECTIVE, reason="its effect did not come", undoes=1)
    records = HealthRecords("words-1", "act", decisions=(ADVICE, undone))
    observations.put_health("near", "words", records)
    answer = decisions(observations, "?limit=1")
    (newest,) = answer.items
    assert (answer.mode, answer.total, answer.next_offset) == ("act", 2, 1)
    assert (newest.number, newest.state, newest.undoes, newest.reason) == (2, "ineffective", 1, undone.reason)
    (first,) = decisions(observations, "?offset=1").items
    assert (first.cause, first.subject, first.evidence) == ("slow-task", "count/2", SLOW.evidence)
    assert (first.kind, first.action, first.command) == ("update", GROW.text, GROW.command)


@pytest.mark.parametrize(
    ("records", "text"),
    [
        (HealthRecords("words-1", "advise"), ""),
        (HealthRecords("words-1", "advise", problem="no packing fits"), "cannot work: no packing fits"),
        (
            HealthRecords("words-1", "advise", decisions=(ADVICE,)),
            "advises: 4 tasks for count, because of slow-task",
        ),
        (HealthRecords("words-1", "act", decisions=(replace(ADVICE, state=DecisionState.EFFECTIVE),)), ""),
    ],
)
def test_the_page_says_what_the_health_manager_wants_now(
    observations: Observations, records: HealthRecords, text: str
) -> None:
    """A decision that is settled is history, and no news."""
    observations.put_health("near", "words", records)
    item = msgspec.json.decode(get(observations, "").content, type=TopologyAnswer).topology
    assert text in item.health
    assert bool(item.health) is bool(text)


def test_only_pages_are_links(observations: Observations) -> None:
    """A scheduler may also name files, and a script is no page at all."""
    plans = observations.topology("near", "words").plans
    assert plans is not None
    links = (JobLink("Spark", "http://h1:4040"), JobLink("logs", "/logs"), JobLink("bad", "javascript:alert(1)"))
    observations.put_plans("near", "words", plans, links)
    observations.put_plans("near", "words", plans)  # without links, those that are known stay
    item = msgspec.json.decode(get(observations, "").content, type=TopologyAnswer).topology
    assert [(each.title, each.url) for each in item.links] == [("Spark", "http://h1:4040")]


def command_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> ExplainCommand:
    """A command of another distribution that runs this code; its arguments are those of the real one."""
    script = tmp_path / "explain.py"
    script.write_text(code, encoding="utf-8")
    monkeypatch.setattr(explain_command, "_HERON", f"import runpy; runpy.run_path({str(script)!r})")
    monkeypatch.setattr(explain_command, "has_command", lambda _path: True)
    return ExplainCommand(lambda profile: ("--profile", profile))


def test_an_explanation_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, observations: Observations
) -> None:
    """Fields that only the command knows are left out; the name of the topology is no option."""
    problem = {"kind": "slow", "what": "count suffers", "why": ["it sleeps"], "since_s": 5.0, "gravity": 1.0}
    document = {"topology": "words", "at_s": 9.0, "summary": [], "problems": [problem], "ended": ""}
    explain = command_that(
        tmp_path,
        monkeypatch,
        "import sys; assert sys.argv[1:] == ['explain', '--json', '--profile', 'near', '--', 'words'], sys.argv; "
        f"print({json.dumps(document)!r})",
    )

    def no_cluster(_name: str) -> object:
        raise AssertionError

    questions = Questions(no_cluster, explain=explain)  # type: ignore[arg-type]
    answer = msgspec.json.decode(get(observations, "/explanation", questions).content, type=ExplanationAnswer)
    (found,) = answer.problems
    assert (answer.at_s, found.what, found.why, found.since_s) == (9.0, "count suffers", ("it sleeps",), 5.0)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; print('heron: error: no such topology', file=sys.stderr); sys.exit(2)", "no such topology"),
        ("print('[]')", "is of another version"),
        ("print('')", "is of another version"),
    ],
)
def test_a_command_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    """The page shows the reason of the command."""
    with pytest.raises(NotYetKnownError, match=message):
        command_that(tmp_path, monkeypatch, code).answer("near", "words")


def test_a_command_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has what installs it."""
    monkeypatch.setattr(explain_command, "has_command", lambda _path: False)
    with pytest.raises(NotYetKnownError, match="pip install heron-health-manager"):
        ExplainCommand(lambda _profile: ()).answer("near", "words")


def test_the_explanation_of_an_unknown_topology_starts_nothing(observations: Observations) -> None:
    """Its name comes from the request."""
    observations.put_list("near", [])
    questions = Questions(lambda _name: sys.exit(), explain=ExplainCommand(lambda _profile: sys.exit()))
    assert get(observations, "/explanation", questions).status_code == 404
