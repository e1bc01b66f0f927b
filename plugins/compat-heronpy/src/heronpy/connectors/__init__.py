"""Connectors feed streamlets, which are not served; importing any module of this package says so."""

from __future__ import annotations

from heronpy.refused_part import refuse

refuse(__name__)
