"""The module paths of streamparse and pystorm, with the names and signatures that programs use."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType

import pytest

from heron.errors import UsageError
from heron_compat_streamparse.served_packages import ServedPackages

SERVED = "heron_compat_streamparse.served"
SPOUTS = "JavaSpout ReliableSpout ShellSpout Spout"
BOLTS = "BatchingBolt Bolt JavaBolt ShellBolt TicklessBatchingBolt"
MODULES = {
    "streamparse": f"{SPOUTS} {BOLTS} Topology Grouping Stream StormHandler Tuple bolt component dsl spout storm",
    "streamparse.bolt": BOLTS,
    "streamparse.spout": SPOUTS,
    "streamparse.component": "Component StormHandler Tuple",
    "streamparse.storm": f"{SPOUTS} {BOLTS} Component StormHandler Tuple",
    "streamparse.storm.bolt": BOLTS,
    "streamparse.storm.spout": SPOUTS,
    "streamparse.storm.component": "Component StormHandler",
    "streamparse.dsl": "Grouping Stream Topology",
    "streamparse.dsl.stream": "Grouping Stream",
    "streamparse.dsl.topology": "Topology TopologyType",
    "streamparse.dsl.component": "ComponentSpec JavaComponentSpec ShellComponentSpec",
    "streamparse.dsl.bolt": "JavaBoltSpec ShellBoltSpec",
    "streamparse.dsl.spout": "JavaSpoutSpec ShellSpoutSpec",
    "streamparse.thrift": "GlobalStreamId",
    "pystorm": "BatchingBolt Bolt Component ReliableSpout Spout TicklessBatchingBolt Tuple bolt component spout",
    "pystorm.bolt": "BatchingBolt Bolt TicklessBatchingBolt Tuple",
    "pystorm.spout": "ReliableSpout Spout",
    "pystorm.component": "Component StormHandler Tuple",
    "pystorm.exceptions": "StormWentAwayError",
}
EMIT = "(self, tup, stream=None, anchors=None, direct_task=None, need_task_ids=False)"
METHODS = {
    "Bolt.emit": EMIT,
    "Bolt.ack": "(self, tup)",
    "Bolt.fail": "(self, tup)",
    "Bolt.process": "(self, tup)",
    "Bolt.process_tick": "(self, tup)",
    "Bolt.spec": "(name=None, inputs=None, par=None, config=None)",
    "Bolt.log": "(self, message, level=None)",
    "Bolt.report_metric": "(self, name, value)",
    "Bolt.raise_exception": "(self, exception, tup=None)",
    "Bolt.initialize": "(self, storm_conf, context)",
    "BatchingBolt.group_key": "(self, tup)",
    "BatchingBolt.process_batch": "(self, key, tups)",
    "BatchingBolt.process_tick": "(self, tick_tup)",
    "Spout.emit": "(self, tup, tup_id=None, stream=None, direct_task=None, need_task_ids=False)",
    "Spout.spec": "(name=None, par=None, config=None)",
    "ShellBolt.spec": "(name=None, command=None, script=None, inputs=None, par=None, config=None, outputs=None)",
    "ShellSpout.spec": "(name=None, command=None, script=None, par=None, config=None, outputs=None)",
    "JavaBolt.spec": "(name=None, serialized_java=None, full_class_name=None, args_list=None, inputs=None, par=1, "
    "config=None, outputs=None)",
    "JavaSpout.spec": "(name=None, serialized_java=None, full_class_name=None, args_list=None, par=1, config=None, "
    "outputs=None)",
}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_its_names(name: str) -> None:
    """Programs import from the old and the new paths."""
    module = importlib.import_module(f"{SERVED}.{name}")
    assert [each for each in MODULES[name].split() if not hasattr(module, each)] == []


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_signature_of_the_original(name: str) -> None:
    """Programs pass arguments by position and by name."""
    cls, _, method = name.partition(".")
    found = getattr(getattr(importlib.import_module(f"{SERVED}.streamparse"), cls), method)
    signature = inspect.signature(found)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    assert str(inspect.Signature(plain)) == METHODS[name]


def test_another_package_of_the_name_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages in one process would have two classes of each name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    foreign = ModuleType("pystorm")
    foreign.__file__ = "/opt/pystorm/__init__.py"
    monkeypatch.setitem(sys.modules, "pystorm", foreign)
    with pytest.raises(UsageError, match="pystorm is already imported from /opt/pystorm"):
        ServedPackages.serve()
