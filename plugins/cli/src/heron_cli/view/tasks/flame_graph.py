"""Draws a profile as a flame graph in SVG: one graph of the time on a processor, one of the time off it.

The outermost call is at the bottom, and the width of a call is its time. The text of a call is also its tooltip. There
is no script in it, so it opens in every browser and in documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from heron.spi.task_profile import TaskProfile
from heron_cli.client.profile_tree import Call, call_tree

__all__ = ["flame_graph"]

_WIDTH, _MARGIN, _ROW, _HEADING = 1200, 10, 18, 28
_CHARACTER = 6.6  # the width of a character in the font below
_NARROWEST = 0.4  # a call that is narrower cannot be seen
_COLOURS = {"user": "#f28e2b", "library": "#edc948", "engine": "#a0b4c8"}
_LEGEND = (("user", "user code"), ("library", "libraries"), ("engine", "engine"))
_FONT = "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace' font-size='11'"


def flame_graph(profile: TaskProfile) -> str:
    """Return the SVG document."""
    title = f"{profile.topology}: {profile.component}/{profile.task_id}, {profile.lasted_s:.1f} s"
    parts: list[str] = []
    bottom = _HEADING + _ROW
    for name, on in (("on a processor", True), ("off a processor: it waits", False)):
        tree = call_tree(profile, on=on)
        height = _ROW * (tree.depth() + 1)
        parts.append(_text(_MARGIN, bottom + _ROW, f"{name}: {tree.total_s:.2f} s"))
        top = bottom + _HEADING
        if tree.total_s > 0:
            scale = (_WIDTH - 2 * _MARGIN) / tree.total_s
            parts += _drawn(tree, _MARGIN, top + height - _ROW, scale, tree.total_s)
        bottom = top + height
    size = f"width='{_WIDTH}' height='{bottom + _MARGIN}' viewBox='0 0 {_WIDTH} {bottom + _MARGIN}'"
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img' aria-label='{_clean(title, quotes=True)}' {_FONT}>"
    )
    background = "<rect width='100%' height='100%' fill='#ffffff'/>"
    return "\n".join((head, background, _text(_MARGIN, _ROW, title), *_legend(), *parts, "</svg>", ""))


def _drawn(call: Call, x: float, y: float, scale: float, all_s: float) -> Iterator[str]:
    width = call.total_s * scale
    if width < _NARROWEST:
        return
    function = call.function
    place = f" ({function.file})" if function.file else ""
    hint = f"{function.name}{place}: {call.total_s:.3f} s, {call.total_s / all_s:.1%}"
    colour = _COLOURS.get(function.origin, "#cccccc")
    shape = f"<rect x='{x:.2f}' y='{y}' width='{width:.2f}' height='{_ROW - 1}' fill='{colour}' rx='1'/>"
    room = int((width - 6) / _CHARACTER)
    shown = function.name if len(function.name) <= room else f"{function.name[: room - 1]}…" if room > 2 else ""
    label = _text(x + 3, y + _ROW - 6, shown) if shown else ""
    yield f"<g><title>{_clean(hint)}</title>{shape}{label}</g>"
    for callee in sorted(call.callees.values(), key=lambda each: (each.function.name, each.function.file)):
        yield from _drawn(callee, x, y - _ROW, scale, all_s)
        x += callee.total_s * scale


def _legend() -> Iterator[str]:
    x = _WIDTH - 330
    for origin, name in _LEGEND:
        yield f"<rect x='{x}' y='8' width='12' height='12' fill='{_COLOURS[origin]}'/>"
        yield _text(x + 16, 18, name)
        x += 110


def _text(x: float, y: float, text: str) -> str:
    return f"<text x='{x:.2f}' y='{y}'>{_clean(text)}</text>"


def _clean(text: str, *, quotes: bool = False) -> str:
    """Text for XML, which allows no control characters."""
    printable = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return escape(printable, {"'": "&apos;", '"': "&quot;"} if quotes else {})
