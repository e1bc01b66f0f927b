"""The uploader for OCI registries: a package is an artifact, and tags name its versions.

Files in reading order: `uploader`, `tags`, `artifact`, `pieces`, `layer_reader`, `signatures`, `registry`,
`registry_transport`, `registry_errors`, `sign_in`, `credentials`, `oci_options`.
"""

from __future__ import annotations

from heron_uploader_oci.uploader import OciUploader

__all__ = ["OciUploader"]
