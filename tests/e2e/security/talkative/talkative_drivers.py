"""A state manager and a sink that log their passwords, as some libraries do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from heron.spi.options import Secret, decode_options
from heron_metricsink_file import FileSink
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

_log = logging.getLogger(__name__)


class StateOptions(msgspec.Struct, frozen=True):
    """A folder, and a password without a use."""

    root: str
    password: Secret


class SinkOptions(msgspec.Struct, frozen=True):
    """The same options."""

    directory: str
    password: Secret


class TalkativeStateManager(LocalFsStateManager):
    """Local files."""

    options_type: ClassVar[type] = StateOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Log the password."""
        chosen = decode_options(options, StateOptions, "statemgr")
        _log.warning("state manager signs in with %s", chosen.password)
        return cls(LocalFsOptions(chosen.root))


class TalkativeSink(FileSink):
    """Lines in files."""

    options_type: ClassVar[type] = SinkOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Log the password."""
        chosen = decode_options(options, SinkOptions, "metricsink")
        _log.warning("sink signs in with %s", chosen.password)
        return cls(Path(chosen.directory), 1 << 20, 1)
