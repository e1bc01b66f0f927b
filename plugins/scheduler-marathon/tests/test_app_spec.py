"""The objects that Marathon gets, and the options that choose them."""

from __future__ import annotations

import re

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_marathon.app_spec import app, constraints, group_id
from heron_scheduler_marathon.options import MarathonOptions

_REQUEST = ContainerRequest(3, "container-3", 1.6, 1152, 100)
_JOB = ManagedJob("words", "words-1", "ann", "ads", "prod", (_REQUEST,))
_SEGMENT = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def test_a_container_is_an_app_of_one_instance() -> None:
    """Its labels name the run, and its size is that of the packing plan with the executor's share."""
    made = app(_JOB, _REQUEST, MarathonOptions(), "run it")
    assert made["id"] == "/heron/words/container-3"
    assert (made["cmd"], made["instances"], made["cpus"], made["mem"], made["disk"]) == ("run it", 1, 1.6, 1152, 164)
    assert made["labels"] == {
        "heron_topology": "words",
        "heron_run": "words-1",
        "heron_container": "3",
        "heron_owner": "ann",
        "heron_role": "ads",
        "heron_env": "prod",
    }


def test_marathon_reserves_no_port_and_gives_time_to_end() -> None:
    """Without `portDefinitions` Marathon takes a port of the agent; the executor needs its time before SIGKILL."""
    made = app(_JOB, _REQUEST, MarathonOptions(stop_grace_s=4.5), "run it")
    assert made["portDefinitions"] == []
    assert made["taskKillGracePeriodSeconds"] == 7


def test_a_lost_agent_is_replaced_soon() -> None:
    """Two copies do no harm, so Marathon need not wait for the agent; `expunge` must come after `inactive`."""
    made = app(_JOB, _REQUEST, MarathonOptions(unreachable_s=30), "run it")
    assert made["unreachableStrategy"] == {"inactiveAfterSeconds": 30, "expungeAfterSeconds": 31}


def test_an_image_gets_the_key_file_of_its_agent() -> None:
    """The image must not have the key: everyone who may pull it could read it."""
    made = app(_JOB, _REQUEST, MarathonOptions(image="heron:1", containerizer="docker", key_file="/k"), "run it")
    assert made["container"] == {
        "type": "DOCKER",
        "docker": {"image": "heron:1"},
        "volumes": [{"containerPath": "/k", "hostPath": "/k", "mode": "RO"}],
    }
    assert made["networks"] == [{"mode": "host"}]


def test_agents_are_chosen_in_the_words_of_marathon() -> None:
    """Constraints and roles pass through; empty ones leave Marathon's defaults."""
    made = app(_JOB, _REQUEST, MarathonOptions(constraints=(("rack", "LIKE", "r[1-3]"),), roles=("heron", "*")), "c")
    assert (made["constraints"], made["acceptedResourceRoles"]) == ([["rack", "LIKE", "r[1-3]"]], ["heron", "*"])
    assert not {"acceptedResourceRoles", "user", "container"} & app(_JOB, _REQUEST, MarathonOptions(), "c").keys()


def test_every_topology_has_a_path_of_its_own() -> None:
    """Marathon takes small letters, digits and hyphens; other names keep a readable part and get a hash."""
    names = ["words", "Words", "words_", "words-", "-", "a" * 200, "a" * 199 + "b", "WORDS"]
    paths = [group_id(MarathonOptions(), each) for each in names]
    assert paths[0] == "/heron/words"
    assert len(set(paths)) == len(names)
    for each in paths:
        segment = each.removeprefix("/heron/")
        assert _SEGMENT.fullmatch(segment), segment
        assert len(segment) <= 60


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"addresses": ["marathon:8080"]}, "is not an address of Marathon"),
        ({"addresses": ["http://ann:s3cret@m:8080"]}, "without credentials"),
        ({"group": "heron"}, "group is 'heron'; use a path"),
        ({"group": "/Heron"}, "use a path of small letters"),
        ({"token": "s3cret", "login": "ann"}, "token and login are both set"),
        ({"token": "s3cret\n"}, "line ends"),
        ({"constraints": [["rack"]]}, "each is a list"),
        ({"key_file": "key"}, "absolute path"),
    ],
)
def test_wrong_options_are_refused_before_a_request(options: dict[str, object], told: str) -> None:
    """`heron profiles check` says it without Marathon, and shows no secret."""
    with pytest.raises(ConfigError, match=re.escape(told)) as caught:
        decode_options(options, MarathonOptions, "scheduler")
    assert "s3cret" not in str(caught.value)


def test_an_app_keeps_away_from_blocked_agents() -> None:
    """The value of UNLIKE is a regular expression that must match the whole name."""
    options = MarathonOptions(constraints=(("rack", "LIKE", "r1"),))
    *given, (name, operator, pattern) = constraints(options, {"b.example", "a.example"})
    assert given == [["rack", "LIKE", "r1"]]
    assert (name, operator) == ("hostname", "UNLIKE")
    assert re.fullmatch(pattern, "a.example")
    assert not re.fullmatch(pattern, "axexample")
    made = app(_JOB, _REQUEST, options, "run it", {"b.example", "a.example"})
    assert made["constraints"] == [*given, [name, operator, pattern]]
    assert app(_JOB, _REQUEST, options, "run it")["constraints"] == given
