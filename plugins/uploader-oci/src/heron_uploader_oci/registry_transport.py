"""Requests to a registry: signed in, repeated where it asks for it, and ended in time."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpx

from heron.clock import monotonic_s, wall_s
from heron.errors import PackageError
from heron_driver_kit.packages import CHUNK_BYTES, InterruptedTransferError
from heron_uploader_oci.credentials import HELPER_S, Credentials, find_credentials
from heron_uploader_oci.oci_options import OciOptions
from heron_uploader_oci.registry_errors import check_encrypted, translated
from heron_uploader_oci.sign_in import Grant, sign_in

__all__ = ["ALL_S", "WAIT_S", "RegistryRequest", "RegistryTransport", "are_of_one_server", "retry_after_s"]

ALL_S = 29.0
"""Seconds for a request with its repetitions: the contract allows 30 s without progress."""

WAIT_S = 5.0
"""Seconds for all Retry-After of one request."""

READ_S = 12.0
"""Seconds between two parts of an answer."""

_CONNECT_S = 5.0
_LEAST_WAIT_S = 0.1
_REPETITIONS = 3
_ANSWER_BYTES = 16 << 20  # of an answer that is not a layer
_ENCODINGS = {"content-encoding", "transfer-encoding"}  # of the transfer, not of what was read
_LATER = {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}


@dataclass(slots=True)
class RegistryRequest:
    """What is repeated after a 401 or a Retry-After; `content` yields the body anew each time."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Callable[[], Iterable[bytes]] | bytes = b""
    read_s: float = READ_S


class RegistryTransport:
    """The connections to one registry. `grant` is what it has granted, `date` that of its last answer."""

    def __init__(
        self,
        options: OciOptions,
        context: ssl.SSLContext,
        pause: Callable[[float], object] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Create the client; the first call connects. With `timeout_s`, all calls together end in that time."""
        self.pause = pause or threading.Event().wait
        self.grant = Grant()
        self.date = ""
        self._options = options
        self._end_s = None if timeout_s is None else monotonic_s() + timeout_s
        self._base = httpx.URL(options.url)
        self._credentials: Credentials | None = None
        self._asked = False
        self._client = _client(context)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def send(self, request: RegistryRequest, *, follow: bool = False, stream: bool = False) -> httpx.Response:
        """Send a request, signed in and in the registry's time; return its answer, whatever the status."""
        signed_in, waits_s = False, list[float]()
        last_s = monotonic_s() + ALL_S - request.read_s  # when the last repetition may begin
        while True:
            response = self._send_once(request, follow=follow, stream=stream)
            self.date = response.headers.get("date", "")
            asked_s = retry_after_s(response)
            if response.status_code == httpx.codes.UNAUTHORIZED and not signed_in and self._sign_in(response):
                signed_in = True
            elif asked_s is not None and len(waits_s) < _REPETITIONS:
                waits_s.append(max(asked_s, _LEAST_WAIT_S))
                if sum(waits_s) > WAIT_S or monotonic_s() + waits_s[-1] > last_s:
                    return response
                self.pause(waits_s[-1])
            else:
                return response
            response.close()

    def _send_once(self, request: RegistryRequest, *, follow: bool, stream: bool) -> httpx.Response:
        signed = (
            {"Authorization": self.grant.header}
            if self.grant.header and are_of_one_server(request.url, self._base)
            else {}
        )
        content = request.content() if callable(request.content) else request.content or None
        with translated(self._options.host):
            built = self._client.build_request(
                request.method, request.url, headers={**request.headers, **signed}, content=content
            )
            return self._answer(built, request.read_s, follow=follow, stream=stream)

    def _answer(
        self, request: httpx.Request, longest_s: float = READ_S, *, follow: bool = False, stream: bool = False
    ) -> httpx.Response:
        """Send a request once; an answer that is not streamed, or not a success, is read within limits."""
        read_s = self._within(longest_s)
        request.extensions["timeout"] = httpx.Timeout(read_s, connect=min(_CONNECT_S, read_s)).as_dict()
        response = self._client.send(request, follow_redirects=follow, stream=True)
        if stream and response.is_success:
            return response
        content, end_s = bytearray(), monotonic_s() + read_s
        try:
            for chunk in response.iter_bytes(CHUNK_BYTES):
                content += chunk
                if len(content) > _ANSWER_BYTES:
                    break
                if monotonic_s() > end_s:
                    msg = f"registry {request.url.host} does not end its answer within {read_s:g} s; try again later"
                    raise InterruptedTransferError(msg)
        finally:
            response.close()
        headers = [each for each in response.headers.multi_items() if each[0].lower() not in _ENCODINGS]
        return httpx.Response(response.status_code, headers=headers, content=bytes(content), request=response.request)

    def _within(self, read_s: float) -> float:
        if self._end_s is None:
            return read_s
        left_s = self._end_s - monotonic_s()
        if left_s <= 0:
            msg = f"registry {self._options.host} does not answer in time; check that it is running"
            raise InterruptedTransferError(msg)
        return min(read_s, left_s)

    def _sign_in(self, response: httpx.Response) -> bool:
        if not are_of_one_server(response.request.url, self._base):
            return False
        if not self._asked:
            self._credentials, self._asked = find_credentials(self._options, self._within(HELPER_S)), True
        with translated(self._options.host):
            grant = sign_in(self._client, self._answer, response, self._credentials)
        if grant is not None:
            self.grant = grant
        return grant is not None


def are_of_one_server(first: httpx.URL, second: httpx.URL) -> bool:
    """Return whether both URLs are of one server: an upload may go to another, which gets no credentials."""
    return (first.scheme, first.host, first.port) == (second.scheme, second.host, second.port)


def _check_redirect(response: httpx.Response) -> None:
    """Check an answer before its redirect is followed."""
    if response.has_redirect_location:
        check_encrypted(response)


def _client(context: ssl.SSLContext) -> httpx.Client:
    headers = {"Accept-Encoding": "identity", "User-Agent": "heron"}
    try:
        hooks = {"response": [_check_redirect]}
        return httpx.Client(headers=headers, verify=context, timeout=READ_S, event_hooks=hooks)
    except (ImportError, ValueError, httpx.InvalidURL) as error:  # of SOCKS and unknown kinds of proxies
        msg = (
            f"the proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY cannot be used ({type(error).__name__}); name one "
            "that begins with http://, or name the registry in NO_PROXY"
        )
        raise PackageError(msg) from None  # the error may show the proxy's password


def retry_after_s(response: httpx.Response) -> float | None:
    """Return the seconds that a response asks to wait, or None."""
    if response.status_code not in _LATER:
        return None
    text = response.headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - wall_s())
    except ValueError:
        return None
