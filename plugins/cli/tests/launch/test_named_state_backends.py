"""The state backends that a topology needs, and the options that a profile has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.errors import ConfigError, PluginError
from heron.spi.driver import DriverRef
from heron_cli.catalog.drivers import Drivers
from heron_cli.launch.named_drivers import named_state_backends
from heron_cli.profiles import Profile, load_profile

ReadProfile = Callable[[str], Profile]


@pytest.fixture
def read(tmp_path: Path) -> ReadProfile:
    """Reads the profile `local` with further sections."""

    def profile(sections: str) -> Profile:
        (tmp_path / "mine.yaml").write_text(f"extends: local\n{sections}")
        return load_profile("mine", Drivers().resolve, config_path=tmp_path, environ={})

    return profile


def topology(whole: str | None, *components: str | None) -> TopologyDefinition:
    """Return a topology with one spout for each choice of a backend."""

    def config(name: str | None) -> dict[str, object]:
        return {} if name is None else {"topology.state.backend": name}

    return TopologyDefinition(
        "t",
        tuple(
            ComponentDefinition(f"c{number}", ComponentKind.SPOUT, "m:C", 1, config=config(name))
            for number, name in enumerate(components)
        ),
        config(whole),
    )


def refused(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
    """Fails the test: nothing needs to be looked up."""
    raise AssertionError(family, name, options)


def test_a_topology_in_memory_needs_none(read: ReadProfile) -> None:
    """It starts without a plugin."""
    assert named_state_backends(topology(None, None, "memory"), read(""), refused) == ()
    assert named_state_backends(topology("lmdb", "memory"), read(""), refused) == ()


def test_one_component_or_all_choose_a_backend(read: ReadProfile) -> None:
    """The component decides, and otherwise the topology."""
    for chosen in (topology(None, None, "lmdb"), topology("lmdb", None, "memory"), topology("lmdb", None, "lmdb")):
        (ref,) = named_state_backends(chosen, read(""), Drivers().resolve)
        assert (ref.family, ref.name, ref.options) == ("state", "lmdb", {})


def test_the_profile_has_the_options(read: ReadProfile) -> None:
    """The folder belongs to the machines, not to the program."""
    profile = read("state: {driver: lmdb, folder: /fast, max_bytes: 1048576}")
    (ref,) = named_state_backends(topology("lmdb", None), profile, refused)
    assert ref.options == {"folder": "/fast", "max_bytes": 1_048_576}
    assert ref in profile.singles


def test_a_backend_that_is_not_installed_names_the_component_and_the_remedy(read: ReadProfile) -> None:
    """Before anything starts."""
    with pytest.raises(PluginError, match=r"component 'c1': topology\.state\.backend: .*'lmbd'.*lmdb"):
        named_state_backends(topology(None, None, "lmbd"), read(""), Drivers().resolve)


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("{driver: lmdb, max_bytes: 5}", r"state\.max_bytes"),
        ("{driver: lmdb, foldr: /fast}", r"state\.foldr.*folder"),
        ("{driver: lmbd}", r"lmbd"),
        ("lmdb", r"state.*not a section"),
    ],
)
def test_a_wrong_section_is_an_error(read: ReadProfile, section: str, reason: str) -> None:
    """Also for topologies that do not use it: people learn of it when they write it."""
    with pytest.raises((ConfigError, PluginError), match=reason):
        read(f"state: {section}")
