"""Key groups: a key has the same group everywhere, and groups are of equal size."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import TopologyError
from heron.planner.key_group import key_group, key_groups_of
from heron.planner.key_owners import even_owners


def test_spreads_keys_evenly() -> None:
    """A hash that favours groups would overload a task; 100,000 keys show a bias of a few percent."""
    owners = even_owners(1024, range(4))
    counts = Counter(owners[key_group((f"word-{at}",), 1024)] for at in range(100_000))
    assert max(counts.values()) < 1.03 * 25_000


@pytest.mark.parametrize("seed", ["0", "1"])
def test_is_the_same_in_every_process(seed: str) -> None:
    """Python salts its hash of strings in each process; the group must not depend on the salt."""
    program = "from heron.planner.key_group import key_group; print(key_group(('word', 3), 1024))"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    output = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
    assert int(output) == key_group(("word", 3), 1024)


def test_the_default_is_1024_groups() -> None:
    """A topology can set another number."""
    assert key_groups_of(TopologyDefinition("t", ())) == 1024
    assert key_groups_of(TopologyDefinition("t", (), {"topology.key.groups": 64})) == 64


@pytest.mark.parametrize("value", [0, -1, 65_537, "64", True, 1.5, None])
def test_refuses_a_number_of_groups_out_of_range(value: object) -> None:
    """The message has the key, the value and the limit."""
    with pytest.raises(TopologyError, match=r"topology\.key\.groups .* from 1 to 65536"):
        key_groups_of(TopologyDefinition("t", (), {"topology.key.groups": value}))
