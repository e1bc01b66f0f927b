"""The former name of Streamlets: programs may import these modules, but not use them."""

from __future__ import annotations

from heronpy.refused_part import provide

provide(
    __name__,
    {
        "builder": ("Builder",),
        "config": ("Config",),
        "context": ("Context",),
        "generator": ("Generator",),
        "keyedwindow": ("KeyedWindow",),
        "resources": ("Resources",),
        "runner": ("Runner",),
        "streamlet": ("Streamlet",),
        "transformoperator": ("TransformOperator",),
        "window": ("Window",),
        "windowconfig": ("WindowConfig",),
    },
    "the package was renamed; import heronpy.streamlet",
)
