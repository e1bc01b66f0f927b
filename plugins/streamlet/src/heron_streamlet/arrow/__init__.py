"""Record batches of Apache Arrow: all that needs `pyarrow`, which `heron-streamlet[columns]` installs.

In: batches with the event time of each row. Out: batches for the next operator, and accumulators by key and window. The
code of a stage (`runtime`) calls it on the task thread.

Reading order: `batches` (what counts as a batch), `column_sources`, `times` (event time of rows), `steps` (operators on
a batch), `gatherer` (records become batches), `aggregates` (what windows compute), `assignment` and `combiner` (before
the shuffle).
"""

# The only code in a package of its kind: whatever is imported first, the error names the remedy.
from heron.errors import UsageError

try:
    import pyarrow as _  # noqa: F401  # whether it is there
except ModuleNotFoundError as error:
    _MISSING = "columns need pyarrow, which is not installed: pip install 'heron-streamlet[columns]'"
    raise UsageError(_MISSING) from error
