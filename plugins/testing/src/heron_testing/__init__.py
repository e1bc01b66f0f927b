"""Contract suites, fakes and fixtures for tests of topologies and plugins (distribution ``heron-testing``)."""

from __future__ import annotations

import sys

from heron.driver_kit.moved_modules import MovedModules
from heron_testing.moved_modules import MOVED

sys.meta_path.append(MovedModules(MOVED))
