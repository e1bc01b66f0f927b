"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from heron.driver_kit.redaction import redact_for_command
from heron.errors import AccessError, HeronError, UsageError
from heron_service_tracker.request_errors import BusyError, NotYetKnownError, RefusedByOperatorError, UnknownPlaceError

__all__ = ["Problem", "problem_response", "status_of"]

PROBLEM_TYPE = "application/problem+json"

_MOST_CHARACTERS = 1_000  # an error quotes names of the request, which may have thousands

_TITLES = {
    400: "malformed query",
    401: "a token is needed",
    403: "refused",
    404: "not found",
    405: "method not allowed",
    409: "busy",
    413: "too long",
    414: "too long",
    415: "not JSON",
    431: "too long",
    500: "the tracker failed",
    503: "not known yet",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request has no answer; `status` is the code of HTTP."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def status_of(error: HeronError) -> int:
    """The status of HTTP for an error."""
    if isinstance(error, UnknownPlaceError):
        return 404
    if isinstance(error, NotYetKnownError):
        return 503
    if isinstance(error, BusyError):
        return 409
    if isinstance(error, RefusedByOperatorError | AccessError):
        return 403
    return 400 if isinstance(error, UsageError) else 500


def problem_response(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """A problem document as a response, without the secrets of the profiles, which errors of drivers may quote."""
    shown = redact_for_command(detail)
    if len(shown) > _MOST_CHARACTERS:
        shown = f"{shown[: _MOST_CHARACTERS - 1]}…"
    body = msgspec.json.encode(Problem(title=_TITLES.get(status, "failed"), status=status, detail=shown))
    return Response(body, status, headers, PROBLEM_TYPE)
