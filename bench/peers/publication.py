"""Writes the stored results into the documents: marked sections, and the plots.

Nobody types these figures. `stale` finds what differs from the stored results, and a test requires that nothing does.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bench.findings import read_results
from bench.peers.comparison import read_comparison
from bench.peers.plots import NAMES, Plot, plots_of
from bench.peers.report import details_of, summary_of
from bench.records import BenchError
from bench.stored_tables import filled, marks_of, templates
from heron_testing_servers.install import ServerNotInstalledError, installed, python_packages

__all__ = ["BEGIN", "END", "PEER_RESULTS", "RESULTS", "digest", "draw_svg", "publish", "stale", "with_section"]

BEGIN = "<!-- written by ./dev bench -- --peers -->"
END = "<!-- end of what ./dev bench -- --peers wrote -->"
RESULTS = "bench/results/latest.json"
PEER_RESULTS = "bench/results/peers.json"

_PERFORMANCE = "docs/performance.md"
_IMAGES = "docs/images"
_NONE = ["Not measured yet."]
_DRAW = Path(__file__).with_name("draw.py")
_MATPLOTLIB = "3.11.2"
_DRAWN_WITHIN_S = 120.0


def draw_svg(plots: Sequence[Plot], folder: Path) -> None:
    """Draw plots with Matplotlib, in its separate environment.

    Raises:
        BenchError: when Matplotlib cannot be installed, or fails.
    """
    asked = [{"name": plot.name, "digest": digest(plot), "data": plot.data} for plot in plots]
    try:
        environment = installed(f"matplotlib-{_MATPLOTLIB}", python_packages(f"matplotlib=={_MATPLOTLIB}"))
    except ServerNotInstalledError as error:
        msg = f"the plots are not drawn: {error}"
        raise BenchError(msg) from error
    with tempfile.TemporaryDirectory() as home:
        ran = subprocess.run(
            [str(environment / "bin" / "python"), str(_DRAW), str(folder)],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_DRAWN_WITHIN_S,
            env={**os.environ, "HOME": home, "PYTHONPATH": ""},
            check=False,
        )
    if ran.returncode:
        msg = f"the plots are not drawn: {ran.stderr.strip()[-2000:]}"
        raise BenchError(msg)


def publish(root: Path, say: Callable[[str], None], draw: Callable[[Sequence[Plot], Path], None] = draw_svg) -> None:
    """Write the sections and plots that differ from the stored results; say what these lack, and what changed.

    Raises:
        BenchError: when a document lacks its marks, or the plots cannot be drawn; no document is changed then.
    """
    plots, lacking = _plots(root)
    texts = _texts(root, plots)
    changed = set(stale(root))
    for each in lacking:
        say(f"not in the stored results, left out of the plots: {each}")
    if outdated := [plot for plot in plots if _image(plot.name) in changed]:
        (root / _IMAGES).mkdir(exist_ok=True)
        draw(outdated, root / _IMAGES)
    for name in set(NAMES) - {plot.name for plot in plots}:
        (root / _image(name)).unlink(missing_ok=True)
    for path, text in texts.items():
        (root / path).write_text(text, encoding="utf-8")
    for path in sorted(changed):
        say(f"changed: {path}")


def stale(root: Path) -> Iterator[str]:
    """Return the documents and plots that are not what the stored results give.

    Raises:
        BenchError: when a document lacks its marks.
    """
    plots, _ = _plots(root)
    for path, text in _texts(root, plots).items():
        if (root / path).read_text(encoding="utf-8") != text:
            yield path
    drawn = {plot.name: plot for plot in plots}
    for name in NAMES:
        if not _is_current(root / _image(name), drawn.get(name)):
            yield _image(name)


def with_section(text: str, lines: Iterable[str], path: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Return the text with these lines between the marks; `path` is for the error.

    Raises:
        BenchError: when the marks are not there exactly once, in order.
    """
    first, last = marks
    begin, end = text.find(first), text.find(last)
    if (text.count(first), text.count(last)) != (1, 1) or begin > end:
        msg = f"{path}: the marks {first!r} and {last!r} must be there once each, in this order"
        raise BenchError(msg)
    return text[:begin] + "\n".join([first, "", *lines, "", text[end:]])


def digest(plot: Plot) -> str:
    """Return what the file of the plot contains if it was drawn from this data by the present draw.py."""
    drawn_by = f"{_MATPLOTLIB}\n{_DRAW.read_text(encoding='utf-8')}\n{json.dumps(plot.data)}"
    return f"sha256 {hashlib.sha256(drawn_by.encode()).hexdigest()}"


def _plots(root: Path) -> tuple[list[Plot], list[str]]:
    machine, findings = read_results(root / RESULTS)
    return plots_of(read_comparison(root / PEER_RESULTS), machine, findings)


def _texts(root: Path, plots: Iterable[Plot]) -> dict[str, str]:
    found = read_comparison(root / PEER_RESULTS)
    pictures = [line for plot in plots for line in ("", f"![{plot.name}](images/{plot.name}.svg)", "", plot.caption)]
    sections = {
        "README.md": summary_of(found) if found else _NONE,
        _PERFORMANCE: [*(details_of(found) if found else _NONE), *pictures],
    }
    texts = {
        path: with_section((root / path).read_text(encoding="utf-8"), lines, path) for path, lines in sections.items()
    }
    _, findings = read_results(root / RESULTS)
    for name, template in templates().items():
        table = [filled(template, findings)]
        texts[_PERFORMANCE] = with_section(texts[_PERFORMANCE], table, _PERFORMANCE, marks_of(name))
    return texts


def _image(name: str) -> str:
    return f"{_IMAGES}/{name}.svg"


def _is_current(image: Path, plot: Plot | None) -> bool:
    if plot is None or not image.exists():
        return plot is None and not image.exists()
    return digest(plot) in image.read_text(encoding="utf-8")
