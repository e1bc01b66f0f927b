"""Signatures of packages, in the format of cosign for container images ("simple signing").

The signature of a manifest is a layer of another manifest with the tag ``sha256-DIGEST.sig``. The layer's content is a
JSON document that names the digest. The layer's annotation has the signature of this content: ECDSA with SHA-256, or
Ed25519.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from heron.errors import ConfigError, PackageError
from heron.spi.typed_values import decode_json
from heron_uploader_oci.artifact import CONFIG, Descriptor, Manifest, decode_manifest, encode_manifest
from heron_uploader_oci.registry import Registry
from heron_uploader_oci.tags import signature_tag

__all__ = ["PrivateKey", "PublicKey", "private_key", "public_keys", "require_signature", "sign"]

PublicKey = EllipticCurvePublicKey | Ed25519PublicKey
PrivateKey = EllipticCurvePrivateKey | Ed25519PrivateKey

_PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_SIGNATURE = "dev.cosignproject.cosign/signature"
_KIND = "cosign container image signature"
_PAYLOAD_BYTES = 64 * 1024
_SIGNATURES = 32  # of one package; a registry cannot hold a container up with more
_BLOCK = re.compile(r"-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----")


class _Image(msgspec.Struct, frozen=True):
    digest: str = msgspec.field(name="docker-manifest-digest")


class _Identity(msgspec.Struct, frozen=True):
    reference: str = msgspec.field(default="", name="docker-reference")


class _Critical(msgspec.Struct, frozen=True):
    identity: _Identity
    image: _Image
    type: str


class _Payload(msgspec.Struct, frozen=True):
    critical: _Critical
    optional: dict[str, str] | None = None


def public_keys(text: str) -> tuple[PublicKey, ...]:
    """Return the keys of `uploader.verify_key`, one or more in PEM.

    Raises:
        ConfigError: when the text has no key, or a key of another kind.
    """
    blocks = _BLOCK.findall(text)
    try:
        keys = tuple(load_pem_public_key(each.encode()) for each in blocks)
    except (ValueError, UnsupportedAlgorithm) as error:
        msg = f"uploader.verify_key: cannot be read: {error}; give a public key in PEM"
        raise ConfigError(msg) from error
    found = tuple(each for each in keys if isinstance(each, EllipticCurvePublicKey | Ed25519PublicKey))
    if not found or len(found) != len(keys):
        msg = "uploader.verify_key: is not a public key of ECDSA or Ed25519; give one in PEM (BEGIN PUBLIC KEY)"
        raise ConfigError(msg)
    return found


def private_key(key_file: str) -> PrivateKey | None:
    """Read the key of `uploader.sign_key_file`; None for "".

    Raises:
        PackageError: when the file cannot be used as a key, or others can read it.
    """
    if not key_file:
        return None
    path = Path(key_file).expanduser()
    remedy = "give a private key of ECDSA or Ed25519 in PEM without a password"
    try:
        if path.stat().st_mode & 0o077:
            msg = f"uploader.sign_key_file: {path} can be read by others; `chmod 600 {path}`"
            raise PackageError(msg)
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        msg = f"uploader.sign_key_file: {path} cannot be used: {reason}; {remedy}"
        raise PackageError(msg) from None  # an error of the library may show the key
    if isinstance(key, EllipticCurvePrivateKey | Ed25519PrivateKey):
        return key
    msg = f"uploader.sign_key_file: {path} has another kind of key; {remedy}"
    raise PackageError(msg)


def sign(registry: Registry, key: PrivateKey, repository: str, digest: str) -> None:
    """Sign a manifest of the repository with a private key, unless this key has signed it.

    Raises:
        PackageError: when the signature cannot be stored.
    """
    tag = signature_tag(digest)
    present = registry.manifest(tag)
    manifest = decode_manifest(present.data) if present else None
    others = manifest.layers if manifest else ()
    if any(
        _is_signed(registry, (key.public_key(),), digest, each) for each in others if each.media_type == _PAYLOAD_TYPE
    ):
        return
    payload = msgspec.json.encode(_Payload(_Critical(_Identity(repository), _Image(digest), _KIND)))
    signed = key.sign(payload) if isinstance(key, Ed25519PrivateKey) else key.sign(payload, ECDSA(SHA256()))
    signature = base64.b64encode(signed).decode()
    blob = f"sha256:{hashlib.sha256(payload).hexdigest()}"
    config = Descriptor.config(_CONFIG_TYPE)
    layer = Descriptor(_PAYLOAD_TYPE, blob, len(payload), {_SIGNATURE: signature})
    registry.put_blob(blob, len(payload), payload)
    registry.put_blob(config.digest, config.size, CONFIG)
    registry.put_manifest(tag, encode_manifest(Manifest(config, (*others, layer))))


def require_signature(registry: Registry, keys: tuple[PublicKey, ...], digest: str, what: str) -> None:
    """Check that a manifest has a signature of one of the keys.

    Raises:
        PackageError: when it has none; `what` names the package.
    """
    stored = registry.manifest(signature_tag(digest))
    found = decode_manifest(stored.data) if stored else None
    layers = [each for each in found.layers if each.media_type == _PAYLOAD_TYPE] if found else []
    if any(_is_signed(registry, keys, digest, layer) for layer in layers[:_SIGNATURES]):
        return
    has = (
        f"none of its {len(layers)} signatures is of a key in uploader.verify_key" if layers else "it has no signature"
    )
    msg = f"{what} is refused: {has}; sign its manifest {digest}, or submit another version"
    raise PackageError(msg)


def _is_signed(registry: Registry, keys: tuple[PublicKey, ...], digest: str, layer: Descriptor) -> bool:
    if layer.size > _PAYLOAD_BYTES:
        return False
    payload = b""
    for chunk in registry.read_blob(layer.digest):
        payload += chunk
        if len(payload) > _PAYLOAD_BYTES:
            return False
    try:
        signature = base64.b64decode(layer.annotations.get(_SIGNATURE, ""), validate=True)
        critical = decode_json(payload, _Payload).critical
    except (ValueError, msgspec.MsgspecError):  # base64 refuses other characters than ASCII with ValueError itself
        return False
    names_it = critical.image.digest == digest and critical.type == _KIND
    return names_it and any(_verifies(key, signature, payload) for key in keys)


def _verifies(key: PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, payload)
        else:
            key.verify(signature, payload, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True
