"""Heron for Python: a stream-processing engine over ZeroMQ whose environment consists of plugins."""

import sys

from heron.moved_modules import MOVED, MovedModules

sys.meta_path.append(MovedModules(MOVED))
