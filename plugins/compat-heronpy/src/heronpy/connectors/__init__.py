"""Sources for Streamlets. Pulsar is refused: heronpy's own connector cannot work."""

from __future__ import annotations

from heronpy.refused_part import provide

provide(
    __name__,
    {"pulsar.pulsarspout": ("PulsarSpout",), "pulsar.pulsarstreamlet": ("PulsarStreamlet",)},
    "there is no connector for Pulsar; derive a heron_streamlet.Source",
)
