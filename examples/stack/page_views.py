"""What the programs of the stack share: the form of a line, the topic, and the view.

A line is ``TIME PAGE``: when a page was seen, in seconds since 1970, and its path.
"""

from __future__ import annotations

from datetime import timedelta

from heron.clock import wall_s
from heron_streamlet import Config
from heron_streamlet.views import Count, View

CATEGORY = "page-views"
TOPIC = "page-views"
VIEW = View[int, int]("views-by-page", Count(), span=timedelta(days=1))

INTERVAL_S = 0.25
"""A line waits for a checkpoint of each pipeline, so this is most of the time until it is in an answer."""

LAG_S = 60
"""A line may be older than the newest one by so much. So a time that is further ahead would make other lines late."""


def line(at_s: float, page: str) -> str:
    """A line, with its end."""
    return f"{at_s:.6f} {page}\n"


def page_of(text: bytes | str | None) -> str:
    """The page of a line.

    Raises:
        ValueError: when it is no line.
    """
    return _parts(text)[1]


def time_of(text: bytes | str | None) -> float:
    """The time of a line, in seconds since 1970.

    Raises:
        ValueError: when it is no line.
    """
    return float(_parts(text)[0])


def is_countable(text: bytes | str | None) -> bool:
    """True for a line whose time is at most `LAG_S` ahead of the clock.

    Raises:
        ValueError: when it is no line, or has another time.
    """
    at_s, latest_s = time_of(text), wall_s() + LAG_S
    if not 0 <= at_s <= latest_s:
        msg = f"the time {at_s} is not from 0 to {latest_s:.0f} s since 1970; set the clock of the program that logs"
        raise ValueError(msg)
    return True


def config() -> Config:
    """Each line counts once, whatever dies."""
    return Config({"topology.stateful.checkpoint.interval.seconds": INTERVAL_S}).set_delivery_semantics(
        Config.EFFECTIVELY_ONCE
    )


def _parts(text: bytes | str | None) -> list[str]:
    decoded = text.decode() if isinstance(text, bytes) else text or ""
    parts = decoded.split()
    if len(parts) != 2:
        msg = f"no line of the form TIME PAGE: {decoded[:80]!r}"
        raise ValueError(msg)
    return parts
