"""One contract suite per driver family; a driver's own test is a subclass with a few fixtures.

In: the class of a driver, its options and its faults. Out: tests that pytest runs in its main thread; cases about
deaths and races start further processes.

Each suite has the name of its family: `scheduler`, `statemgr`, `uploader`, `packing`, `metricsink`, `checkpoint`,
`serializer` with `column_serializer`, `state`, `engine`, `store`, `task`, and `health` with `health_parts`. `source`
and `sink` are the suites of connectors, and share `connector`. These paths are what drivers import. `driver` has the
cases of every family, and skips them.

Two rooms have what suites are made of: `fault_cases` (deaths, and servers that are away) and `parts` (second processes,
models, and single subjects).
"""

from __future__ import annotations

import sys

from heron.driver_kit.moved_modules import MovedModules
from heron_testing.moved_modules import MOVED

sys.meta_path.append(MovedModules(MOVED))
