"""How clients reach a Kafka cluster, and what its errors are here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from heron.errors import ConnectorError, UsageError

__all__ = ["LATEST_S", "TIMEOUT_S", "Cluster", "Option", "Options", "Refusal", "described", "is_passing"]

_log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
"""Seconds for a question to the cluster, such as the end of a partition; a broker that restarts needs 5 to 20."""

LATEST_S = 1e11
"""Times since 1970 in seconds are below this number; above, they are probably milliseconds."""

Option: TypeAlias = str | int | float | bool
Options: TypeAlias = Mapping[str, Option] | Callable[[], Mapping[str, Option]]

_SERVERS = "bootstrap.servers"

T = TypeVar("T")

# A broker that is away, a leader that moves. The client tries again; only people and other code can correct the rest.
_PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
_REMEDIES = {
    KafkaError._AUTHENTICATION: "set sasl.mechanism, sasl.username and sasl.password in `options`",
    KafkaError._SSL: "set security.protocol and ssl.ca.location in `options`",
    KafkaError.SASL_AUTHENTICATION_FAILED: "set sasl.mechanism, sasl.username and sasl.password in `options`",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "give the user the rights for this topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "give the user the right Read for the group of this client",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "give the user the right Write for this transactional id",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        "the brokers' transaction.max.timeout.ms is shorter: raise it, or set transaction.timeout.ms in `options`"
    ),
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create the topic",
    KafkaError._UNKNOWN_TOPIC: "create the topic",
    KafkaError._UNKNOWN_PARTITION: "the topic has fewer partitions than before: was it created again?",
}


class Refusal:
    """The last lasting error that a client has reported outside its calls, such as a wrong password."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def hear(self, error: KafkaError) -> None:
        """The client's `error_cb`. It tries again by itself when a broker is away."""
        if is_passing(error):
            _log.warning("kafka: %s", error.str())
        else:
            self.error = error


@dataclass(frozen=True)
class Cluster:
    """What a client needs to connect; picklable. Its text has no option, because an option may be a password.

    Attributes:
        options: configuration of librdkafka, or a function that returns it. The function is called where a client is
            made, so passwords need not be part of the topology.
    """

    servers: str
    options: Options = field(repr=False)

    @classmethod
    def of(cls, servers: str | Sequence[str], options: Options | None, reserved: frozenset[str], owner: str) -> Cluster:
        """Check what an author gives.

        Raises:
            UsageError: when a server has no port, or an option is one that `owner` sets itself.
        """
        listed = servers.split(",") if isinstance(servers, str) else list(servers)
        listed = [each.strip() for each in listed] or [""]
        for each in listed:
            host, _, port = each.rpartition(":")
            if not host or not port.isdecimal():
                msg = f"{owner}: servers: {each!r} is not HOST:PORT, such as kafka1.example.org:9092"
                raise UsageError(msg)
        cluster = cls(",".join(listed), options or {})
        if not callable(cluster.options):
            _check_free(cluster.options, reserved, owner)
        return cluster

    def consumer(self, own: Mapping[str, Option], refusal: Refusal) -> Consumer:
        """A new consumer. `own` overrides the options.

        Raises:
            ConnectorError: when the client does not accept an option.
        """
        return self._client(Consumer, own, refusal)

    def producer(self, own: Mapping[str, Option], refusal: Refusal) -> Producer:
        """A new producer; as `consumer`."""
        return self._client(Producer, own, refusal)

    def admin(self, refusal: Refusal) -> AdminClient:
        """A new client that asks about topics; as `consumer`."""
        return self._client(AdminClient, {}, refusal)

    def given(self) -> Mapping[str, Option]:
        """The options of now."""
        return self.options() if callable(self.options) else self.options

    def _client(self, kind: Callable[..., T], own: Mapping[str, Option], refusal: Refusal) -> T:
        config = {**self.given(), **own, _SERVERS: self.servers, "error_cb": refusal.hear}
        try:
            return kind(config, logger=_log)
        except (KafkaException, TypeError, ValueError) as error:
            msg = f"Kafka's client does not accept its options: {described(error)}"
            raise ConnectorError(msg) from error


def _check_free(options: Mapping[str, Option], reserved: frozenset[str], owner: str) -> None:
    for name in sorted({_SERVERS, "error_cb", *reserved}.intersection(options)):
        msg = f"{owner}: options: {name!r} is set by {owner} itself; remove it"
        raise UsageError(msg)


def is_passing(error: KafkaError) -> bool:
    """Whether the client, or the same call later, may succeed without anyone's help."""
    return error.code() in _PASSING or (error.retriable() and not error.fatal())


def described(error: KafkaError | BaseException) -> str:
    """What happened, and the remedy if there is one."""
    first = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if not isinstance(first, KafkaError):
        return str(first)
    remedy = _REMEDIES.get(first.code())
    return f"{first.str()} ({first.name()}){f'; {remedy}' if remedy else ''}"
