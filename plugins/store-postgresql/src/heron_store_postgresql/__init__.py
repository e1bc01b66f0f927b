"""The store of views in PostgreSQL, for the processes of any machine that reaches the server."""

from __future__ import annotations

from heron_store_postgresql.driver import PostgresqlViewStore

__all__ = ["PostgresqlViewStore"]
