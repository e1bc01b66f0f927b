"""How tasks reach a table, and what delta-rs's errors are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, SchemaMismatchError
from deltalake.exceptions import TableNotFoundError as NoTable

from heron.errors import ConnectorError, UnreachableError, UsageError

__all__ = ["Options", "Table", "schema_of", "translated"]

Options: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class Table:
    """Where a table is; picklable.

    Attributes:
        options: storage options of delta-rs, or a function that returns them. The function is called where the table
            is opened, so passwords need not be part of the topology.
    """

    uri: str
    options: Options

    @classmethod
    def of(cls, table: str | Path, options: Options | None, owner: str) -> Table:
        """Check what an author gives. A path becomes absolute, as tasks run in other folders.

        Raises:
            UsageError: when it is no place of a table, or the options are not texts by name.
        """
        uri = str(table)
        if not uri.strip():
            msg = f"{owner}: table={table!r} is neither a path nor a URI such as s3://bucket/table"
            raise UsageError(msg)
        if options is not None and not callable(options):
            wrong: dict[str, object] = {name: each for name, each in options.items() if type(each) is not str}
            for name, value in wrong.items():
                msg = f"{owner}: options: {name!r} has a value of type {type(value).__name__}, not a text"
                raise UsageError(msg)
        return cls(uri if "://" in uri else str(Path(uri).resolve()), options or {})

    def storage_options(self) -> dict[str, str]:
        """The options, of a function those of now."""
        return dict(self.options() if callable(self.options) else self.options)

    def found(self, version: int | None = None) -> DeltaTable | None:
        """The table at a version, the newest one if it is None; None if there is no table.

        Raises:
            UnreachableError: when its storage does not answer.
            ConnectorError: when delta-rs cannot read the version.
        """
        with translated(self.uri):
            try:
                return DeltaTable(self.uri, version, self.storage_options() or None)
            except NoTable as error:
                if "Unknown scheme" in str(error):
                    raise
                return None


@contextmanager
def translated(uri: str) -> Iterator[None]:
    """Makes errors of delta-rs those of a connector.

    Raises:
        UnreachableError: when the same call may succeed later: the storage does not answer, or other writers are first.
        ConnectorError: when the table itself is the reason.
    """
    try:
        yield
    except (NoTable, DeltaProtocolError, SchemaMismatchError) as error:
        msg = f"table {uri}: {_text(error)}"
        raise ConnectorError(msg) from error
    except (CommitFailedError, OSError) as error:
        msg = f"table {uri}: {_text(error)}"
        raise UnreachableError(msg) from error
    except (DeltaError, pa.ArrowException, ValueError) as error:
        msg = f"table {uri}: {_text(error)}"
        raise ConnectorError(msg) from error


def schema_of(table: DeltaTable) -> pa.Schema:
    """The columns of a table, with those by which it is partitioned, in its order."""
    return pa.schema(table.schema().to_arrow())


def _text(error: BaseException) -> str:
    """The message in one line, without the colours of delta-rs."""
    plain = str(error).replace("\x1b[31m↳\x1b[0m", "")
    return " ".join(plain.split()).rstrip(".")
