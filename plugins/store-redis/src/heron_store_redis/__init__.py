"""The store of views in Redis, for the processes of any machine that reaches the server."""

from __future__ import annotations

from heron_store_redis.driver import RedisViewStore

__all__ = ["RedisViewStore"]
