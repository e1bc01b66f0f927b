"""Draws plots as SVG: ``python draw.py FOLDER``, in an environment with Matplotlib.

Standard input is a JSON list of plots: `name` and `digest`, and `data` with either `bars` or `panels` of lines. Equal
input gives equal files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import NotRequired, TypedDict

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# The palette of Okabe and Ito: readers without full colour vision can tell these apart. Markers differ too.
_COLORS, _MARKERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), "os^D"
_OURS, _OTHERS, _INK = "#0072B2", "#999999", "#222222"

_STYLE = {
    "svg.hashsalt": "heron",
    "svg.fonttype": "none",  # text stays text: small files that screen readers can read
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


class _Bar(TypedDict):
    name: str
    ours: bool
    values: tuple[float, float, float]  # smallest, median, largest


class _Line(TypedDict):
    name: str
    values: Sequence[float | None]


class _Panel(TypedDict):
    title: NotRequired[str]
    x: str
    y: str
    ticks: Sequence[str]
    lines: Sequence[_Line]


def main() -> None:
    """Draw every plot of the input."""
    with mpl.rc_context(_STYLE):
        for plot in json.load(sys.stdin):
            data = plot["data"]
            figure = _bars(data["bars"], data["x"]) if "bars" in data else _panels(data["panels"])
            metadata = {"Date": None, "Creator": None, "Description": plot["digest"]}
            path = Path(sys.argv[1], f"{plot['name']}.svg")
            figure.savefig(path, metadata=metadata, facecolor="white")


def _bars(bars: Sequence[_Bar], x_label: str) -> Figure:
    figure = Figure(figsize=(8, 0.8 + 0.36 * len(bars)), layout="constrained")
    axes = figure.subplots()
    for at, bar in enumerate(bars):
        low, middle, high = bar["values"]
        axes.barh(at, middle, color=_OURS if bar["ours"] else _OTHERS, height=0.65)
        axes.plot([low, high], [at, at], color=_INK, linewidth=1.5, marker="|", markersize=7)
        axes.annotate(f"{middle:.3g}", (high, at), (7, 0), textcoords="offset points", va="center")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.12)
    axes.set_yticks(range(len(bars)), [bar["name"] for bar in bars])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(x_label)
    return figure


def _panels(panels: Sequence[_Panel]) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for at, panel in enumerate(panels):
        _lines(figure.add_subplot(1, len(panels), at + 1, sharey=figure.axes[0] if at else None), panel)
    figure.axes[0].set_ylim(bottom=0)  # shared; before all lines are drawn it would end the automatic scale
    return figure


def _lines(axes: Axes, panel: _Panel) -> None:
    places = range(len(panel["ticks"]))
    for line, color, marker in zip(panel["lines"], cycle(_COLORS), cycle(_MARKERS), strict=False):
        values = [float("nan") if each is None else each for each in line["values"]]
        axes.plot(places, values, color=color, marker=marker, label=line["name"], linewidth=1.8)
    axes.set_xticks(places, panel["ticks"])
    axes.set_title(panel.get("title", ""), fontsize=10)
    axes.set_xlabel(panel["x"])
    axes.set_ylabel(panel["y"])
    if panel["lines"][0]["name"]:
        axes.legend(frameon=False)


if __name__ == "__main__":
    main()
