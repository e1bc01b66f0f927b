"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["KubernetesOptions"]

_FIXED = frozenset({"containers", "restartPolicy", "terminationGracePeriodSeconds"})


class KubernetesOptions(ManagedOptions, frozen=True, kw_only=True):
    """The image, where Pods run, and what is added to them.

    - `image` has Python with heron-core, heron-scheduler-kit and the plugins of the profile.
    - `kubeconfig` and `context` choose the cluster and the user; empty: as `kubectl` does. Without a kubeconfig, the
      service account of the Pod in which the command runs.
    - `namespace` is where the objects are; empty: that of the context.
    - `run_as_user` is the user id of the processes; None: that of the image.
    - `cpu_limit` makes the requested processors a limit too. Memory is always a limit.
    - `env` are variables of every container. `labels` and `annotations` are added to every object.
    - `pod` has further fields of the Pods' spec: ``nodeSelector``, ``tolerations``, ``imagePullSecrets``.
    - `page` is a page of a Pod for `heron status`; ``{namespace}`` and ``{pod}`` are replaced.
    """

    image: Annotated[str, msgspec.Meta(min_length=1)]
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    image_pull_policy: str = ""
    run_as_user: Annotated[int, msgspec.Meta(ge=0)] | None = None
    cpu_limit: bool = False
    env: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each value
    labels: dict[str, str] = {}  # noqa: RUF012
    annotations: dict[str, str] = {}  # noqa: RUF012
    pod: dict[str, object] = {}  # noqa: RUF012
    page: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if taken := sorted(_FIXED & self.pod.keys()):
            msg = f"pod: {', '.join(taken)} cannot be set, because the scheduler sets it; remove it"
            raise ValueError(msg)
