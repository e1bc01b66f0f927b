"""Specs of bolts; streamparse has a class for each kind, here all are one."""

from __future__ import annotations

from heron_compat_streamparse.specs.spec import ComponentSpec

__all__ = ["JavaBoltSpec", "ShellBoltSpec"]

JavaBoltSpec = ShellBoltSpec = ComponentSpec
