"""Event time of columns: `event_time` for all rows of a batch, with the same rule of lateness."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heron.errors import UserCodeError
from heron_streamlet.arrow.batches import as_array
from heron_streamlet.windowing.event_time import LIMIT_US, START_OF_TIME_US, EventClock, event_time_us

__all__ = ["Times", "column_times"]

Times = npt.NDArray[np.int64]
"""Microseconds since the epoch, one for each row."""

_MICROS_PER_S = 1_000_000
_MICROS = {"s": _MICROS_PER_S, "ms": 1000, "us": 1}
_NANOS_PER_MICRO = 1000


def column_times(column: Any, clock: EventClock) -> tuple[Times, Times]:  # noqa: ANN401  # what an author's function gives
    """Event time and bound of each row, in the order of the rows; the clock goes on behind the last.

    Args:
        column: an array of timestamps with a time zone, or of seconds since 1970-01-01T00:00:00Z.
        clock: that of the source partition which the rows come from.

    Raises:
        UserCodeError: when a time is null, not finite, beyond the years 1684 and 2255, or too far in the future, or
            when the column has another type. The clock is then as before.
    """
    times = _times_us(column)
    latest = np.empty(len(times) + 1, np.int64)
    latest[0] = clock.latest_us
    latest[1:] = times
    np.maximum.accumulate(latest, out=latest)
    newest = int(latest[-1])
    bounds = latest[:-1] - clock.lag_us
    if len(bounds) and clock.latest_us == START_OF_TIME_US:
        bounds[0] = START_OF_TIME_US
    if newest > clock.latest_us:
        clock.advance(newest)
    return times, bounds


def _times_us(column: Any) -> Times:  # noqa: ANN401
    array = as_array(column)
    if array.null_count:
        row = array.is_null().index(True).as_py()
        msg = f"event time of row {row} of the batch is null"
        raise UserCodeError(msg)
    kind = array.type
    if pa.types.is_timestamp(kind):
        return _of_timestamps(array)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        msg = f"event time of the type {kind}; give timestamps with a time zone, or seconds since 1970 in UTC"
        raise UserCodeError(msg)
    seconds = array.to_numpy(zero_copy_only=False)
    # The negation finds NaN too.
    wrong = ~((seconds <= LIMIT_US // _MICROS_PER_S) & (seconds >= -LIMIT_US // _MICROS_PER_S))
    if wrong.any():
        event_time_us(seconds[wrong.argmax()].item())  # it says what is wrong
    if pa.types.is_integer(kind):
        micros: Times = seconds.astype(np.int64) * _MICROS_PER_S
    else:
        micros = np.rint(seconds.astype(np.float64) * _MICROS_PER_S).astype(np.int64)
    return micros


def _of_timestamps(array: pa.Array) -> Times:
    if array.type.tz is None:
        msg = (
            f"event time of the type {array.type} has no time zone; use pyarrow.compute.assume_timezone(column, "
            "'UTC'), or the zone of the times"
        )
        raise UserCodeError(msg)
    units: Times = array.view(pa.int64()).to_numpy(zero_copy_only=False)
    if array.type.unit == "ns":
        units = units // _NANOS_PER_MICRO
    micros = _MICROS.get(array.type.unit, 1)
    limit = LIMIT_US // micros
    if len(units) and (units.max() > limit or units.min() < -limit):
        event_time_us(float(units[np.abs(units).argmax()]) * micros / _MICROS_PER_S)
    return units * micros
