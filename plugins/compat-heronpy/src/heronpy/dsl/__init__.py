"""What streamlets were called before; importing any module of this package says that they are not served."""

from __future__ import annotations

from heronpy.refused_part import refuse

refuse(__name__)
