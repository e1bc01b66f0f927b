"""Sources for Streamlets, which are not supported: programs may import these modules, but not use them."""

from __future__ import annotations

from heronpy.refused_part import provide

provide(
    __name__,
    {
        "mock.arraylooper": ("ArrayLooper",),
        "pulsar.pulsarspout": ("PulsarSpout",),
        "pulsar.pulsarstreamlet": ("PulsarStreamlet",),
        "textfiles.textfilesgenerator": ("TextFileGenerator",),
    },
)
