"""The code that a running topology has now: its plans and its package, unpacked to be compared with new code."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from heron.errors import RefusedError, StateError
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import hash_files, unpack
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan
from heron_cli.launch.code.component_digest import component_digests
from heron_cli.launch.loading.loaded import LoadedTopology
from heron_cli.launch.submission import manifest_of
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["RunningCode", "running_code"]


@dataclass(frozen=True, slots=True)
class RunningCode:
    """The plans of a topology, and its package: the URI, the unpacked files, the manifest."""

    plan: PhysicalPlan
    packing: PackingPlan
    uri: str
    folder: Path
    manifest: PackageManifest

    def other_code(self, loaded: LoadedTopology) -> tuple[str, ...]:
        """Return the components whose classes have other code in a program that was loaded."""
        manifest = manifest_of(loaded)
        manifest = replace(manifest, files=hash_files(loaded.root, loaded.files))
        if _settings(manifest) != _settings(self.manifest):  # tasks load the file in another way
            return tuple(each.name for each in self.plan.topology.components)
        before = component_digests(self.folder, self.manifest, self.plan.topology)
        after = component_digests(loaded.root, manifest, loaded.definition)
        return tuple(name for name, digest in before.items() if after.get(name) != digest)


@contextmanager
def running_code(environment: Environment, topology: RemoteTopology) -> Iterator[RunningCode]:
    """Fetch the package that a topology runs; its files are removed at the end of the block.

    Raises:
        RefusedError: when the topology is starting, or an update or a change of its code is under way.
        StateError: when a plan is missing or cannot be read.
        PackageError: when the package cannot be fetched.
    """
    plans = topology.plans()
    plan = plans.physical
    if plan is None or not plan.version:
        msg = f"topology {topology.name!r} is starting; only a running topology can get new code"
        raise RefusedError(msg)
    if plan.update is not None or plan.code is not None:
        msg = f"an update of topology {topology.name!r} is under way, see `heron status {topology.name}`; try again"
        raise RefusedError(msg)
    uri = plan.package or topology.run.package_uri
    if not uri:
        msg = f"topology {topology.name!r}: its execution state names no package; submit it again"
        raise StateError(msg)
    with tempfile.TemporaryDirectory(prefix="heron-package-") as name:
        folder = Path(name).resolve()
        environment.uploader.download(uri, folder / "package")
        manifest = unpack(folder / "package", folder / "files")
        yield RunningCode(plan, plans.packing, uri, folder / "files", manifest)


def _settings(manifest: PackageManifest) -> PackageManifest:
    """What of a manifest changes how every task loads the file, besides the files themselves."""
    return replace(manifest, files={}, origin="")
