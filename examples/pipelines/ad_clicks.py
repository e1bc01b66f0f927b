"""Clicks and revenue by advertisement: counted over history by a batch, and live since then; readers see one number.

    heron run examples/pipelines/ad_clicks.py --profile spark-batch    # history: in production every night
    heron run examples/pipelines/ad_clicks.py                          # live
    python examples/pipelines/ad_clicks.py --read                      # the answer, and its age

Both commands run the same pipeline, each with its source: an archive that ends, and clicks that arrive now. The two
overlap, as they do in production, and no click counts twice.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from heron_streamlet import Builder, Config, Items, Runner
from heron_streamlet.views import Count, HistoryAndLive, Sum, View, ViewReader

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ADS = [f"ad-{number}" for number in range(8)]
DELAY = timedelta(minutes=5)  # a click may arrive this much later than others


@dataclass(frozen=True, slots=True)
class Click:
    """A click on an advertisement, and what the advertiser pays for it."""

    at: datetime
    ad: str
    cents: int


CLICKS = View[Click, int]("clicks-by-ad", Count(), span=DAY)
CENTS = View[int, int]("cents-by-ad", Sum[int](), span=DAY)


def clicks(days: range, per_day: int) -> Iterator[Click]:
    """Yield the clicks of these days, a little out of order; those of a day are always the same."""
    for day in days:
        chance = random.Random(day)
        for number in range(per_day):
            at = START + day * DAY + number * DAY / per_day - chance.random() * min(DELAY, number * DAY / per_day)
            yield Click(at, ADS[min(int(chance.expovariate(0.5)), len(ADS) - 1)], chance.randrange(5, 50))


def ad_clicks(days: int, per_day: int) -> Builder:
    """Build the pipeline. The archive is complete until the last day; live clicks begin a day earlier."""
    builder = Builder()
    source = HistoryAndLive(
        history=Items(lambda: clicks(range(days), per_day)),
        live=Items(lambda: clicks(range(days - 2, days), per_day)),
        until=START + (days - 1) * DAY,
    )
    happened = builder.new_source(source).event_time(lambda click: click.at, lag=DELAY)
    happened.key_by(lambda click: click.ad).set_num_partitions(2).to_view(CLICKS)
    happened.key_by(lambda click: click.ad, lambda click: click.cents).to_view(CENTS)
    return builder


def table(profile: str) -> Iterator[str]:
    """Yield the lines of the answer."""
    from heron_cli.client import open_store  # noqa: PLC0415  # a task needs no command

    store = open_store(profile)
    counted, paid = ViewReader(CLICKS, store).read(ADS), ViewReader(CENTS, store).read(ADS)
    history = f"{counted.until:%Y-%m-%d}" if counted.until else "nothing yet"
    age = "nothing" if counted.age_s is None else f"{counted.age_s:.0f} s old"
    yield f"history until {history}, live {age}"
    for ad in ADS:
        yield f"{ad} {counted.values[ad]:6} clicks {paid.values[ad] / 100:10.2f} EUR"


def main(arguments: Sequence[str]) -> None:
    """Parse the command line; submit the pipeline, or read its views."""
    parser = argparse.ArgumentParser(prog="ad_clicks.py", description="counts clicks by advertisement")
    parser.add_argument("--days", type=int, default=4, help="days of clicks, at least 2 (default: %(default)s)")
    parser.add_argument("--per-day", type=int, default=10_000, help="clicks of a day (default: %(default)s)")
    parser.add_argument("--read", action="store_true", help="print the answer; start nothing")
    parser.add_argument("--profile", default="local", help="whose store is read (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.days < 2:
        parser.error(f"--days {options.days} is below 2")
    if options.read:
        print("\n".join(table(options.profile)))  # what the author asked for
        return
    config = Config().set_delivery_semantics(Config.EFFECTIVELY_ONCE)
    Runner().run("ad_clicks", config, ad_clicks(options.days, options.per_day))


if __name__ == "__main__":
    main(sys.argv[1:])
