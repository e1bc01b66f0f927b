"""Amazon ECS with the services around it: the API of ECS written from its service model, in front of moto."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.contract_server import ContractServer
from heron_testing_servers.install import installed, python_packages
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "EcsServer"]

FIXTURES = ("ecs",)

_VERSION = "5.2.5"
_ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
_INSTANCES = (
    {"name": "i-1", "cpu": 16384, "memory": 16000, "attributes": {"rack": "r1"}},
    {"name": "i-2", "cpu": 16384, "memory": 16000, "attributes": {"rack": "r2"}},
)


class EcsServer(ContractServer):
    """ECS with Fargate and two instances of EC2. Its `process` may be killed; the services of moto run on."""

    region = "us-east-1"
    access_key = "AKIAADMINISTRATOR"
    secret_key = "administrator-secret"  # for a server on the loopback address that ends with the tests
    cluster = "tests"
    """A cluster that exists."""
    execution_role = "arn:aws:iam::123456789012:role/execution"
    """A role that may do everything."""

    def __init__(self, folder: Path, instances: Sequence[Mapping[str, object]] = _INSTANCES) -> None:
        """Install moto from the package index into the cache if it is absent.

        Raises:
            ServerNotInstalledError: when that fails.
        """
        place = installed(f"moto-{_VERSION}", python_packages(f"moto[server]=={_VERSION}"))
        port = free_port()
        moto = f"http://127.0.0.1:{port}"
        command = [str(place / "bin" / "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self.moto = ServerProcess(command, folder / "moto.log", lambda: answers(f"{moto}/moto-api/"))
        """The process of the other services; they lose all when it is killed."""
        options: dict[str, object] = {
            "region": self.region,
            "moto": moto,
            "instances": list(instances),
            "cluster": self.cluster,
        }
        keys = {"access_key": self.access_key, "secret_key": self.secret_key}
        super().__init__("heron_testing_servers.ecs_parts.api", folder, **options, **keys)

    def start(self) -> None:
        """Start the processes that do not run.

        Raises:
            ServerError: when one of them does not start.
        """
        self.moto.start()
        super().start()
        self.add_role("execution")

    def kill(self) -> None:
        """End the server, its containers and moto; idempotent."""
        super().kill()
        self.moto.kill()

    def add_user(self, name: str, policy: Mapping[str, object]) -> tuple[str, str]:
        """Add a user with a policy of IAM, and return an access key and its secret."""
        key, secret = f"AKIA{name.upper()}", f"secret-of-{name}"
        self.control(
            "POST", "add", {"kind": "users", "name": key, "value": {"name": name, "secret": secret, "policy": policy}}
        )
        return key, secret

    def add_role(self, name: str, policy: Mapping[str, object] = _ALL) -> str:
        """Add a role that tasks may have, with its policy, and return its ARN."""
        self.control("POST", "add", {"kind": "roles", "name": name, "value": policy})
        return f"arn:aws:iam::123456789012:role/{name}"

    def set_fargate(self, *, capacity: bool) -> None:
        """Let Fargate have no capacity for new tasks, or have it again."""
        self.control("POST", "fargate", {"capacity": capacity})

    def hold(self, status: str) -> None:
        """Keep tasks in ``PROVISIONING``, ``PENDING`` or ``DEPROVISIONING``; the empty text lets them go on."""
        self.control("POST", "hold", {"status": status})

    def set_instance(self, name: str, *, running: bool) -> None:
        """Terminate an instance of EC2 with its tasks, or start it again."""
        self.control("POST", "instances", {"name": name, "running": running})

    def interrupt(self, task: str) -> None:
        """Take the capacity of a task on Fargate Spot back."""
        self.control("POST", "interrupt", {"name": task})

    def out_of_memory(self, task: str) -> None:
        """Kill the containers of a task as the kernel does when they exceed their memory."""
        self.control("POST", "out-of-memory", {"name": task})
