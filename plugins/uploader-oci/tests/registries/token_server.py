"""A registry that asks for tokens, and a token server that signs them as the document of distribution says."""

from __future__ import annotations

import base64
import json
import secrets
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from registry_front import serving

from heron.clock import wall_s
from heron_testing_servers.oci_registry import OciRegistry

__all__ = ["REFRESH_TOKEN", "TokenServer"]

REFRESH_TOKEN = "identity-of-the-test"
_RIGHTS = {"writer": {"pull", "push", "delete"}, "reader": {"pull"}}
_DAY = timedelta(days=1)


class TokenServer:
    """Knows the users ``writer`` and ``reader``, and one identity token, which writes."""

    password = "to-be-tested"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        self._key = generate_private_key(SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tokens")])
        now = datetime.fromtimestamp(wall_s(), UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .sign(self._key, SHA256())
        )
        self._certificate = base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()
        (folder / "tokens.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
        self.scopes: list[str] = []
        """The rights that were asked for."""
        self.refreshed = 0
        """How often the identity token was exchanged."""

    def start(self) -> None:
        """Start both servers."""
        tokens = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
                user, _, password = text.partition(":")
                self.grant(user if password == tokens.password else "", parse_qs(urlsplit(self.path).query))

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                known = form["grant_type"] == ["refresh_token"] and form["refresh_token"] == [REFRESH_TOKEN]
                tokens.refreshed += known
                self.grant("writer" if known else "", {**form, "scope": form["scope"][0].split()})

            def grant(self, user: str, asked: dict[str, list[str]]) -> None:
                body = json.dumps({"token": tokens.token(user, asked)}).encode() if user in _RIGHTS else b"not a token"
                self.send_response_only(200 if user in _RIGHTS else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        host = self._open.enter_context(serving(Handler))
        bundle = self._folder / "tokens.pem"
        section = f"token: {{realm: 'http://{host}/token', service: tests, issuer: tests, rootcertbundle: {bundle}}}"
        registry = OciRegistry(self._folder, auth=section)
        registry.start()
        self._open.callback(registry.kill)
        self._host = registry.host

    @property
    def options(self) -> dict[str, object]:
        """The options of a driver, for the same repository each time."""
        return {"repository": f"{self._host}/tests", "plain_http": True}

    def close(self) -> None:
        """End both servers."""
        self._open.close()

    def token(self, user: str, asked: dict[str, list[str]]) -> str:
        """Return a token for the asked rights that the user has."""
        self.scopes += asked.get("scope", [])
        access = []
        for scope in asked.get("scope", []):
            kind, name, rights = scope.split(":")
            granted = sorted(_RIGHTS[user] & set(rights.split(",")))
            access.append({"type": kind, "name": name, "actions": granted})
        now = int(wall_s())
        claims = {"iss": "tests", "aud": "tests", "sub": user, "exp": now + 300, "nbf": now - 10, "iat": now}
        header = {"typ": "JWT", "alg": "ES256", "x5c": [self._certificate]}
        signed = f"{_json(header)}.{_json({**claims, 'jti': secrets.token_hex(8), 'access': access})}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ECDSA(SHA256())))
        return f"{signed}.{_plain(r.to_bytes(32) + s.to_bytes(32))}"


def _json(value: object) -> str:
    return _plain(json.dumps(value).encode())


def _plain(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
