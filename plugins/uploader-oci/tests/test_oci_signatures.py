"""Signatures in a real registry: a policy refuses what no known key has signed, before it is read."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from registry_front import Front

from heron.errors import PackageError
from heron_testing_servers.oci_registry import OciRegistry
from heron_uploader_oci import OciUploader
from heron_uploader_oci.artifact import decode_manifest
from heron_uploader_oci.registry import Registry, StoredManifest

Key = EllipticCurvePrivateKey | Ed25519PrivateKey


def key_file(path: Path, key: Key) -> str:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    return str(path)


def public(key: Key) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def signature_of(registry: Registry, uri: str) -> tuple[bytes, bytes, StoredManifest]:
    """The signed document and its signature, and the manifest that it is about."""
    stored = registry.manifest(uri.rpartition("/")[2])
    assert stored is not None
    signatures = registry.manifest(f"{stored.digest.replace(':', '-')}.sig")
    manifest = decode_manifest(signatures.data) if signatures else None
    assert manifest is not None
    (layer,) = manifest.layers
    assert layer.media_type == "application/vnd.dev.cosign.simplesigning.v1+json"
    signature = base64.b64decode(layer.annotations["dev.cosignproject.cosign/signature"])
    return b"".join(registry.read_blob(layer.digest)), signature, stored


@pytest.mark.parametrize(
    "key", [generate_private_key(SECP256R1()), Ed25519PrivateKey.generate()], ids=["ec", "ed25519"]
)
def test_a_signed_package_is_accepted(options: dict[str, object], package: Path, tmp_path: Path, key: Key) -> None:
    """One of several keys of the policy is enough, so keys can be replaced."""
    signing = {**options, "sign_key_file": key_file(tmp_path / "key", key)}
    uri = OciUploader.open(signing).upload(package, "words")
    other = generate_private_key(SECP256R1())
    checking = OciUploader.open({**options, "verify_key": public(other) + public(key)})
    checking.download(uri, tmp_path / "target")
    assert checking.tagged("words", "latest").uri == uri
    assert checking.upload(package, "words") == uri  # it is there and signed
    assert "signatures are checked" in checking.check(10.0)


def test_other_packages_are_refused_before_they_are_read(
    options: dict[str, object], package: Path, tmp_path: Path, front: Front, registry: Registry
) -> None:
    """No signature, or only one of another key: no layer is fetched, and nothing is unpacked."""
    key, other = generate_private_key(SECP256R1()), generate_private_key(SECP256R1())
    checking = OciUploader.open({**options, "verify_key": public(key)})
    unsigned = OciUploader.open(options).upload(package, "words")
    for signer, reason in ((None, "it has no signature"), (other, "none of its 1 signatures is of a key")):
        if signer:
            signing = {**options, "sign_key_file": key_file(tmp_path / "key", signer)}
            assert OciUploader.open(signing).upload(package, "words") == unsigned
        front.requests.clear()
        for attempt in (
            lambda: checking.download(unsigned, tmp_path / "target"),
            lambda: checking.tagged("words", "latest"),
            lambda: checking.upload(package, "words"),
        ):
            with pytest.raises(PackageError, match=f"is refused: {reason}"):
                attempt()
        assert len([each for each in front.requests if each.startswith("GET") and "/blobs/" in each]) <= (
            3 if signer else 0
        )
    assert not (tmp_path / "target").exists()
    signing = {**options, "sign_key_file": key_file(tmp_path / "key", key)}
    for _ in range(2):  # a second signature by the known key, and then none by the same key
        assert OciUploader.open(signing).upload(package, "words") == unsigned
    checking.download(unsigned, tmp_path / "target")
    stored = registry.manifest(unsigned.rpartition("/")[2])
    signatures = registry.manifest(f"{stored.digest.replace(':', '-')}.sig") if stored else None
    manifest = decode_manifest(signatures.data) if signatures else None
    assert manifest is not None
    assert len(manifest.layers) == 2


def test_an_upload_that_no_container_would_take_stores_nothing(
    options: dict[str, object], package: Path, front: Front
) -> None:
    """The command fails before its containers do."""
    checking = OciUploader.open({**options, "verify_key": public(generate_private_key(SECP256R1()))})
    with pytest.raises(PackageError, match=r"set uploader.sign_key_file"):
        checking.upload(package, "words")
    assert front.sent_bytes == 0


def test_a_key_that_no_container_knows_uploads_nothing(
    options: dict[str, object], package: Path, tmp_path: Path, front: Front
) -> None:
    """The keys of the profile do not belong together, so each container would refuse the package."""
    key, other = generate_private_key(SECP256R1()), Ed25519PrivateKey.generate()
    signing = {**options, "sign_key_file": key_file(tmp_path / "key", key)}
    with pytest.raises(PackageError, match="there is no key of it to sign with"):
        OciUploader.open({**signing, "verify_key": public(other)}).upload(package, "words")
    assert front.sent_bytes == 0
    both = OciUploader.open({**signing, "verify_key": public(other) + public(key)})
    both.download(both.upload(package, "words"), tmp_path / "target")


def test_a_signed_package_is_repaired_with_a_key_only(
    options: dict[str, object], package: Path, tmp_path: Path, registry: Registry, oci_registry: OciRegistry
) -> None:
    """A repair makes a new manifest; without a signature the tags would mean a package that containers refuse."""
    package.write_bytes(secrets.token_bytes(100))
    key = generate_private_key(SECP256R1())
    signing = {**options, "sign_key_file": key_file(tmp_path / "key", key)}
    checking = OciUploader.open({**options, "verify_key": public(key)})
    uri = OciUploader.open(signing).upload(package, "words")
    OciUploader.open(options).tag(uri, "live")
    stored = registry.manifest(uri.rpartition("/")[2])
    manifest = decode_manifest(stored.data) if stored else None
    assert stored is not None
    assert manifest is not None
    oci_registry.blob_file(manifest.layers[0].digest.removeprefix("sha256:")).write_bytes(b"X" * 100)
    for without in (checking, OciUploader.open(options)):
        with pytest.raises(PackageError, match=r"damaged layers.*upload it with uploader.sign_key_file"):
            without.upload(package, "words")
    assert registry.digest_of("words..live") == registry.digest_of(uri.rpartition("/")[2]) == stored.digest
    assert OciUploader.open(signing).upload(package, "words") == uri
    checking.download(checking.tagged("words", "live").uri, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def test_the_signature_of_another_package_does_not_count(
    options: dict[str, object], package: Path, tmp_path: Path, registry: Registry
) -> None:
    """Whoever may push can copy a signature; it names the digest that it is about."""
    key = generate_private_key(SECP256R1())
    signed = OciUploader.open({**options, "sign_key_file": key_file(tmp_path / "key", key)}).upload(package, "words")
    package.write_bytes(b"hostile")
    hostile = OciUploader.open(options).upload(package, "words")
    _, _, stored = signature_of(registry, signed)
    signatures = registry.manifest(f"{stored.digest.replace(':', '-')}.sig")
    target = registry.manifest(hostile.rpartition("/")[2])
    assert signatures is not None
    assert target is not None
    registry.put_manifest(f"{target.digest.replace(':', '-')}.sig", signatures.data)
    checking = OciUploader.open({**options, "verify_key": public(key)})
    with pytest.raises(PackageError, match="none of its 1 signatures"):
        checking.download(hostile, tmp_path / "target")
    registry.put_manifest(signed.rpartition("/")[2], target.data)  # nor does the tag of a signed package help
    with pytest.raises(PackageError, match="of another package"):
        checking.download(signed, tmp_path / "target")


def test_a_garbled_signature_does_not_count(
    options: dict[str, object], package: Path, tmp_path: Path, registry: Registry
) -> None:
    """Whoever may push can store any text as a signature."""
    key = generate_private_key(SECP256R1())
    uri = OciUploader.open({**options, "sign_key_file": key_file(tmp_path / "key", key)}).upload(package, "words")
    _, signature, stored = signature_of(registry, uri)
    place = f"{stored.digest.replace(':', '-')}.sig"
    signatures = registry.manifest(place)
    assert signatures is not None
    for text in ("ä" * 8, "%%%", ""):
        registry.put_manifest(place, signatures.data.replace(base64.b64encode(signature), text.encode()))
        with pytest.raises(PackageError, match="none of its 1 signatures"):
            OciUploader.open({**options, "verify_key": public(key)}).download(uri, tmp_path / "target")


def test_openssl_verifies_the_signature(
    options: dict[str, object], package: Path, tmp_path: Path, registry: Registry
) -> None:
    """The format is that of cosign: a document in its form, signed with ECDSA over SHA-256."""
    key = generate_private_key(SECP256R1())
    uri = OciUploader.open({**options, "sign_key_file": key_file(tmp_path / "key", key)}).upload(package, "words")
    payload, signature, stored = signature_of(registry, uri)
    assert json.loads(payload) == {
        "critical": {
            "identity": {"docker-reference": options["repository"]},
            "image": {"docker-manifest-digest": stored.digest},
            "type": "cosign container image signature",
        },
        "optional": None,
    }
    for name, content in (("payload", payload), ("signature", signature), ("public", public(key).encode())):
        (tmp_path / name).write_bytes(content)
    command = ["openssl", "dgst", "-sha256", "-verify", "public", "-signature", "signature", "payload"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout == b"Verified OK\n"


def test_the_signature_goes_with_the_package(
    options: dict[str, object], package: Path, tmp_path: Path, registry: Registry
) -> None:
    """A registry without packages has no signatures either."""
    key = key_file(tmp_path / "key", generate_private_key(SECP256R1()))
    uploader = OciUploader.open({**options, "sign_key_file": key})
    uri = uploader.upload(package, "words")
    assert len(registry.tags()) == 3
    uploader.undo(uri)
    assert registry.tags() == ()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (None, 0o600, "cannot be used: No such file"),
        (b"no key", 0o600, "cannot be used: ValueError; give a private key"),
        (
            b"-----BEGIN PRIVATE KEY-----\nkept-secret\n-----END PRIVATE KEY-----\n",
            0o644,
            "can be read by others; `chmod 600",
        ),
    ],
)
def test_a_key_that_cannot_sign_is_named(
    options: dict[str, object],
    package: Path,
    tmp_path: Path,
    front: Front,
    content: bytes | None,
    mode: int,
    message: str,
) -> None:
    """The message has the file, and nothing of its content. `heron profiles check` finds it before a submission."""
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    with pytest.raises(PackageError, match=f"uploader.sign_key_file: .*{message}") as caught:
        OciUploader.open({**options, "sign_key_file": str(path)}).upload(package, "words")
    assert "kept-secret" not in str(caught.value)
    assert front.sent_bytes == 0
    with pytest.raises(PackageError, match=r"uploader\.sign_key_file"):
        OciUploader.open({**options, "sign_key_file": str(path)}).check(10.0)
