"""A program for heronpy that derives its topology, with components of another file.

heron run heronpy_class.py -- FOLDER
"""

from __future__ import annotations

import sys

from heronpy_calls import NumberSpout, SeenBolt

import heronpy.api.api_constants as constants
from heronpy.api.stream import Grouping
from heronpy.api.topology import Topology


class Derived(Topology):
    config = {constants.TOPOLOGY_STMGRS: "2", "folder": sys.argv[1]}
    numbers = NumberSpout.spec(par=1, config={"mine": 1})
    seen = SeenBolt.spec(
        par=2,
        inputs={numbers: Grouping.fields("number"), numbers["odd"]: Grouping.ALL},
        config={constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1},
    )
