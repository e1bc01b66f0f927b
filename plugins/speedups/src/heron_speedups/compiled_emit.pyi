from collections.abc import Callable
from typing import TypeVar

CONTRACT: int
"""The version of the arguments of `make` and of what they mean. The core uses the version that it knows, or none."""

Emit = TypeVar("Emit", bound=Callable[..., object])

def make(
    generated: Emit,
    stream: object,
    overflow: Callable[[object], None],
    rows: list[object],
    arity: int,
    edges: tuple[tuple[tuple[int, ...], dict[object, object], list[object] | None], ...],
    extra_name: str,
    extras: list[object] | None,
    kind: int,
    absent: object,
    /,
) -> Emit:
    """Return an emit that does what `generated` does.

    It appends the row of a usual call itself, and passes every other call on to `generated`, before it has changed
    anything. Usual is a call with an exact list or tuple of `arity` values, whose keys are known, without a stream, a
    task, or a wish for task ids, and with at most the argument `extra_name`.

    Args:
        generated: the emit of `heron.instance.output.generated_emit`.
        stream: has the attribute `limit`: when `rows` has as many entries, `overflow` is called with the values.
        overflow: flushes.
        rows: gets the row of each call: a tuple, or the value itself where `arity` is 1.
        arity: the number of fields, 0 or more.
        edges: for each grouping by key the positions of its fields, what is known of its keys, and the list that gets
            what is known of the row's key, or None; at most 8 edges.
        extra_name: `tup_id` or `anchors`. `tup_id` may also be the second argument without a name.
        extras: gets an entry for each row, or is None where nobody needs one.
        kind: what `extras` get. 0: the argument, or `absent`. 1: the argument, and nothing where it is missing or None.
            2: the only anchor in the argument, a received tuple, or `absent`; other anchors are passed on.
        absent: the entry for a call without the argument.

    Raises:
        ValueError: when there are more than 8 edges, or an edge or `kind` is none of these.
    """
