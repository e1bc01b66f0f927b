"""The objects that Aurora gets, and the options that choose them."""

from __future__ import annotations

import json
import re

import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options
from heron_scheduler_aurora.job_config import (
    INSTANCE,
    Size,
    added_instances,
    comparable,
    config_size,
    job_key,
    metadata,
    new_job,
    sealed_text,
    size_of,
    task_config,
    update_request,
)
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields

_OPTIONS = AuroraOptions(cluster="west")
_REQUESTS = (ContainerRequest(0, "0", 0.6, 512), ContainerRequest(1, "1", 1.6, 1152, 100))
_JOB = ManagedJob("words", "words-1", "ann", "ads", "prod", _REQUESTS)
_COMMAND = f'HERON_HOST_ADDRESS="h" exec python3 -P -m start /key words-1 SEALED "{INSTANCE}"'


def _config(options: AuroraOptions = _OPTIONS, job: ManagedJob = _JOB) -> Json:
    return task_config(job, size_of(job.containers), options, _COMMAND)


def _container(options: AuroraOptions) -> object:
    return _config(options)["container"]


def test_the_key_of_a_job_is_what_a_person_submits() -> None:
    """`heron submit aurora/ads/prod`; without an environment, that of the profile, because Aurora has no `default`."""
    assert job_key(_JOB, _OPTIONS) == {"role": "ads", "environment": "prod", "name": "words"}
    unnamed = ManagedJob("words", "words-1", "ann", "ann", "default", _REQUESTS)
    assert job_key(unnamed, _OPTIONS)["environment"] == "devel"
    assert job_key(unnamed, AuroraOptions(cluster="west", environment="test"))["environment"] == "test"


def test_all_instances_are_of_one_config_of_the_largest_container() -> None:
    """Its command has the number of the instance as a word that Aurora replaces, so the configs are equal."""
    config = _config()
    assert config_size(config) == Size(1.6, 1152, 164)
    data = json.loads(str(fields(config["executorConfig"])["data"]))
    (process,) = data["task"]["processes"]
    assert process["cmdline"] == _COMMAND
    assert data["task"]["finalization_wait"] == 8
    made = new_job(_JOB, config)
    assert (made["key"], made["instanceCount"]) == ({"role": "ads", "environment": "prod", "name": "words"}, 2)
    assert config["isService"] is True
    assert metadata(config, "heron_run") == "words-1"


def test_the_sealed_text_is_found_again() -> None:
    """A config is compared with what the profile would make now, which seals the same with other bytes."""
    assert sealed_text(_config()) == "SEALED"
    assert sealed_text({}) == ""


def test_the_order_of_sets_makes_no_other_config() -> None:
    """Aurora answers sets in any order. Another tier or constraint is another config."""
    options = AuroraOptions(cluster="west", constraints={"rack": "b,a", "host": "limit:1"})
    config = _config(options)
    rack = {"name": "rack", "constraint": {"value": {"negated": False, "values": ["a", "b"]}}}
    host = {"name": "host", "constraint": {"limit": {"limit": 1}}}
    turned: Json = {**config, "constraints": [rack, host], "metadata": []}
    assert comparable(turned) == comparable(config)
    assert comparable(_config()) != comparable(config)
    assert comparable(_config(AuroraOptions(cluster="west", tier="preferred"))) != comparable(_config())


def test_a_job_update_touches_only_the_instances_that_it_adds() -> None:
    """In batches, with a rollback; a later command knows from its metadata what it adds."""
    made = update_request([6, 3, 4], _config(), AuroraOptions(cluster="west", batch=2, watch_s=5))
    assert made["instanceCount"] == 7
    assert made["settings"] == {
        "updateGroupSize": 2,
        "waitForBatchCompletion": True,
        "maxPerInstanceFailures": 0,
        "maxFailedInstances": 0,
        "minWaitInInstanceRunningMs": 5000,
        "rollbackOnFailure": True,
        "updateOnlyTheseInstances": [{"first": 3, "last": 4}, {"first": 6, "last": 6}],
    }
    assert added_instances(made) == {3, 4, 6}
    assert added_instances({"metadata": [{"key": "other", "value": "3"}]}) == frozenset()


def test_constraints_are_in_the_words_of_aurora() -> None:
    """As in the configuration files of Aurora's own client."""
    words = {"host": "limit:2", "rack": "!a, b", "zone": "x"}
    assert _config(AuroraOptions(cluster="west", constraints=words))["constraints"] == [
        {"name": "host", "constraint": {"limit": {"limit": 2}}},
        {"name": "rack", "constraint": {"value": {"negated": True, "values": ["a", "b"]}}},
        {"name": "zone", "constraint": {"value": {"negated": False, "values": ["x"]}}},
    ]


def test_an_image_gets_the_key_file_of_its_host() -> None:
    """The image must not have the key: everyone who may pull it could read it."""
    mesos = _container(AuroraOptions(cluster="west", image="r:5000/heron:1", key_file="/k"))
    assert mesos == {
        "mesos": {
            "image": {"docker": {"name": "r:5000/heron", "tag": "1"}},
            "volumes": [{"containerPath": "/k", "hostPath": "/k", "mode": 2}],
        }
    }
    docker = _container(AuroraOptions(cluster="west", image="heron", key_file="/k", containerizer="docker"))
    assert docker == {"docker": {"image": "heron", "parameters": [{"name": "volume", "value": "/k:/k:ro"}]}}
    assert _container(_OPTIONS) == {"mesos": {}}


def test_a_size_holds_what_is_smaller_in_everything() -> None:
    """A copy of a config is used only if the new container fits in it."""
    assert Size(1.6, 1152, 164).holds(Size(0.6, 1152, 64))
    for larger in (Size(1.7, 1, 1), Size(0.1, 1153, 1), Size(0.1, 1, 165)):
        assert not Size(1.6, 1152, 164).holds(larger)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "scheduler.cluster: missing"),
        ({"cluster": "a/b"}, "scheduler.cluster"),
        ({"cluster": "west", "addresses": ["aurora:8081"]}, "is not an address of Aurora"),
        ({"cluster": "west", "addresses": ["http://ann:s3cret@a:8081"]}, "without credentials"),
        ({"cluster": "west", "password": "s3cret\n"}, "line ends"),
        ({"cluster": "west", "constraints": {"host": "limit:0"}}, "constraints: host is 'limit:0'"),
        ({"cluster": "west", "constraints": {"rack": "!"}}, "constraints: rack is '!'"),
        ({"cluster": "west", "tier": "revocable"}, "scheduler.tier"),
    ],
)
def test_wrong_options_are_refused_before_a_request(options: dict[str, object], told: str) -> None:
    """`heron profiles check` says it without Aurora, and shows no secret."""
    with pytest.raises(ConfigError, match=re.escape(told)) as caught:
        decode_options(options, AuroraOptions, "scheduler")
    assert "s3cret" not in str(caught.value)


def test_instances_keep_away_from_blocked_hosts() -> None:
    """Aurora takes one constraint for each attribute, so hosts that the profile excludes are in the same one."""
    options = AuroraOptions(cluster="west", constraints={"host": "!c", "rack": "r1"})
    made = task_config(_JOB, size_of(_REQUESTS), options, _COMMAND, {"b", "a"})
    excluded = {"name": "host", "constraint": {"value": {"negated": True, "values": ["c", "a", "b"]}}}
    assert excluded in made["constraints"]  # type: ignore[operator] # JSON
    assert len(made["constraints"]) == 2  # type: ignore[arg-type] # JSON
    assert task_config(_JOB, size_of(_REQUESTS), options, _COMMAND) == _config(options)


def test_a_container_moves_by_an_update_of_its_instance() -> None:
    """It adds no instance, so the removal of another one does not abort it."""
    request = update_request([1], _config(), _OPTIONS, adds=False)
    assert fields(request["settings"])["updateOnlyTheseInstances"] == [{"first": 1, "last": 1}]
    assert added_instances(request) == frozenset()
    assert metadata(request, "heron_run") == "words-1"
