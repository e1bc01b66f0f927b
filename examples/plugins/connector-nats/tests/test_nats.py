"""The connector with a real server: each message once, in order, whatever dies."""

from __future__ import annotations

import asyncio
import pickle
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nats
import nats.js.errors
import pytest
from heron.errors import ConnectorError, UnreachableError, UsageError, UserCodeError
from heron_streamlet.connectors.sources import MeasuredReader, PlacedReader, Reader
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.ports import free_port
from heron_testing.sandbox import Sandbox
from heron_testing.waiting import wait_until
from heron_testing_servers.install import debian_package, installed
from heron_testing_servers.server_process import ServerProcess, answers
from nats.js import JetStreamContext

from heron_connector_nats import NatsMessage, NatsSink, NatsSource, connection
from heron_connector_nats import source as source_module

SEEN_S = 60.0
CONTEXT = StageContext("messages")
CONF = """\
listen: 127.0.0.1:{port}
max_payload: 100000
http: 127.0.0.1:{monitor}
jetstream {{ store_dir: "{folder}", max_mem: 64M, max_file: 1G }}
"""


class NatsServer(ServerProcess):
    """A nats-server with JetStream; its streams survive a kill."""

    def __init__(self, folder: Path, more: str = "") -> None:
        port, monitor = free_port(), free_port()
        self.url = f"nats://127.0.0.1:{port}"
        program = installed("nats-server-debian", debian_package("nats-server")) / "usr" / "sbin" / "nats-server"
        conf = folder / "nats.conf"
        conf.write_text(CONF.format(port=port, monitor=monitor, folder=folder / "streams") + more)
        ready = f"http://127.0.0.1:{monitor}/healthz"
        super().__init__([str(program), "-c", str(conf)], folder / "nats.log", lambda: answers(ready))

    def do(self, ask: Callable[[JetStreamContext], object]) -> object:
        """Ask JetStream, without the code under test."""

        async def asked() -> object:
            client = await nats.connect(self.url)
            try:
                return await ask(client.jetstream())  # type: ignore[misc]  # its calls are coroutines
            finally:
                await client.close()

        return asyncio.run(asked())

    def make(self, most: int = -1) -> str:
        """A new stream of at most so many messages; it takes the subject of its name."""
        name = f"S{secrets.token_hex(4)}"
        self.do(lambda js: js.add_stream(name=name, subjects=[name], max_msgs=most))
        return name

    def fill(self, stream: str, values: Sequence[object]) -> None:
        """Publish texts."""

        async def publish(js: JetStreamContext) -> None:
            for each in values:
                await js.publish(stream, str(each).encode())

        self.do(publish)

    def values(self, stream: str) -> list[str]:
        """All messages of a stream."""

        async def read(js: JetStreamContext) -> list[str]:
            last = (await js.stream_info(stream)).state.last_seq
            messages = [await js.get_msg(stream, number) for number in range(1, last + 1)]
            return [(each.data or b"").decode() for each in messages]

        found = self.do(read)
        assert isinstance(found, list)
        return found


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def opened(nats_server: NatsServer) -> Iterator[Callable[..., Reader[NatsMessage]]]:
    """Opens readers, which end with the test."""
    nats_server.start()
    readers: list[Reader[NatsMessage]] = []

    def open_reader(source: NatsSource, stream: str, position: object = None) -> Reader[NatsMessage]:
        copy: NatsSource = pickle.loads(pickle.dumps(source))
        readers.append(copy.open(stream, pickle.loads(pickle.dumps(position)), CONTEXT))
        return readers[-1]

    yield open_reader
    for each in readers:
        each.close()


Opened = Callable[..., Reader[NatsMessage]]


def read(reader: Reader[NatsMessage], count: int, limit: int = 7) -> list[str]:
    """Read so many messages."""
    found: list[str] = []

    def complete() -> bool:
        found.extend(each.data.decode() for each in reader.read(min(limit, count - len(found))) or ())
        return len(found) >= count

    if count:
        wait_until(complete, SEEN_S, "messages")
    return found


def test_reading_again_from_each_position_gives_the_rest(nats_server: NatsServer, opened: Opened) -> None:
    """A checkpoint may be at any message."""
    stream = nats_server.make()
    everything = [str(number) for number in range(10)]
    nats_server.fill(stream, everything)
    source = NatsSource([nats_server.url], stream)
    assert source.partitions(2) == [stream]
    for done in range(10):
        reader = opened(source, stream)
        assert read(reader, done, limit=3) == everything[:done]
        assert read(opened(source, stream, reader.position), 10 - done) == everything[done:]
    reader = opened(source, stream)
    messages: list[NatsMessage] = []

    def some() -> bool:
        messages.extend(reader.read(10) or ())
        return bool(messages)

    wait_until(some, SEEN_S, "messages")
    assert isinstance(reader, PlacedReader)
    rest = everything[len(messages) - 1 :]
    assert read(opened(source, stream, reader.position_of(len(messages) - 1)), len(rest)) == rest


def test_killed_server_interrupts_reading_and_loses_nothing(nats_server: NatsServer, opened: Opened) -> None:
    """The server forgets consumers; the reader has the position."""
    stream = nats_server.make()
    nats_server.fill(stream, range(500))
    reader = opened(NatsSource([nats_server.url], stream), stream)
    found = read(reader, 5)
    nats_server.kill()
    assert reader.read(100) == []
    nats_server.start()
    nats_server.fill(stream, range(500, 510))
    found += read(reader, 505, limit=100)
    assert found == [str(number) for number in range(510)]


def test_backlog_is_what_waits_in_the_stream(nats_server: NatsServer, opened: Opened) -> None:
    """`heron metrics` shows it."""
    stream = nats_server.make()
    nats_server.fill(stream, range(10))
    reader = opened(NatsSource([nats_server.url], stream), stream)
    assert isinstance(reader, MeasuredReader)
    assert reader.backlog() is None
    read(reader, 4)
    wait_until(lambda: reader.backlog() == 6, SEEN_S, "the backlog")


def test_position_that_is_gone_or_of_another_stream_is_an_error(nats_server: NatsServer, opened: Opened) -> None:
    """Going on elsewhere would lose data without a word."""
    stream = nats_server.make(most=3)
    source = NatsSource([nats_server.url], stream)
    nats_server.fill(stream, range(2))
    reader = opened(source, stream)
    read(reader, 1)
    position = reader.position
    nats_server.fill(stream, range(2, 8))
    with pytest.raises(ConnectorError, match=r"sequence 2 is out of range, it has 6 to 8: a limit"):
        opened(source, stream, position).read(1)
    nats_server.do(lambda js: js.delete_stream(stream))
    nats_server.do(lambda js: js.add_stream(name=stream, subjects=[stream]))
    nats_server.fill(stream, range(2))
    with pytest.raises(ConnectorError, match=r"it was created again at .*, and sequence 2 belongs to the one of"):
        opened(source, stream, position).read(1)
    with pytest.raises(UsageError, match=r"there is no stream 'absent'"):
        NatsSource([nats_server.url], "absent").partitions(1)


def test_gap_before_the_first_message_of_a_consumer_is_an_error(nats_server: NatsServer, opened: Opened) -> None:
    """The stream has its position when the consumer is made, and has removed it before the first message."""
    stream = nats_server.make(most=3)
    nats_server.fill(stream, range(2))
    reader = opened(NatsSource([nats_server.url], stream), stream)
    assert read(reader, 2) == ["0", "1"]
    again = opened(NatsSource([nats_server.url], stream), stream, reader.position)
    assert again.read(1) == []  # the consumer is there
    nats_server.fill(stream, range(2, 8))
    with pytest.raises(ConnectorError, match=r"sequence 3 is out of range, it has 6 to 8: a limit"):
        read(again, 1)


def test_message_that_was_deleted_in_a_stream_is_passed_over(nats_server: NatsServer, opened: Opened) -> None:
    """Somebody has decided it, also if it is the next one."""
    stream = nats_server.make()
    nats_server.fill(stream, range(4))
    reader = opened(NatsSource([nats_server.url], stream), stream)
    assert read(reader, 1) == ["0"]
    nats_server.do(lambda js: js.delete_msg(stream, 2))
    assert read(opened(NatsSource([nats_server.url], stream), stream, reader.position), 2) == ["2", "3"]


def test_client_that_a_server_has_closed_is_replaced(nats_server: NatsServer, opened: Opened) -> None:
    """It ends for good when it is refused; the password may be right again later."""
    stream = nats_server.make()
    nats_server.fill(stream, range(2))
    place = connection.Connection([nats_server.url], None)
    try:
        assert place.call(lambda js: js.stream_info(stream)).state.messages == 2
        assert place._client is not None
        asyncio.run_coroutine_threadsafe(place._client.close(), place._loop).result(SEEN_S)
        assert place.call(lambda js: js.stream_info(stream)).state.messages == 2
    finally:
        place.close()


def test_refusal_of_the_server_is_said(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong password must not look like a server that is away."""
    monkeypatch.setattr(source_module, "_START_S", 3.0)
    server = NatsServer(tmp_path, 'authorization { user: "heron", password: "right" }')
    server.start()
    try:
        with pytest.raises(UnreachableError, match=r"does not answer within 3 s: .*Authorization Violation"):
            NatsSource([server.url], "S", lambda: {"user": "heron", "password": "wrong"}).partitions(1)
        with pytest.raises(UsageError, match="there is no stream 'S'"):
            NatsSource([server.url], "S", lambda: {"user": "heron", "password": "right"}).partitions(1)
    finally:
        server.kill()


def test_message_above_the_limit_of_the_server_fails_alone(nats_server: NatsServer, tmp_path: Path) -> None:
    """A message that can never be published must not stop every later commit."""
    stream = nats_server.make()
    sink: NatsSink[str] = NatsSink([nats_server.url], stream, id="counts", folder=tmp_path)
    sink.setup(CONTEXT)
    try:
        wait_until(lambda: sink._connection.most_bytes == 100_000, SEEN_S, "the limit of the server")
        with pytest.raises(UserCodeError, match=r"99795 bytes are more than 99794; raise max_payload of the server"):
            sink.put("x" * 99_795)
        sink.put("x" * 99_794)
        sink.prepare(10**11)  # a long id
        sink.commit(10**11)
    finally:
        sink.close()
    assert [len(each) for each in nats_server.values(stream)] == [99_794]


@pytest.mark.parametrize(
    ("failure", "wanted"),
    [
        (None, UnreachableError),
        (nats.js.errors.ServiceUnavailableError(), UnreachableError),
        (nats.js.errors.NotFoundError(), ConnectorError),
    ],
)
def test_stream_that_is_still_loaded_is_not_missing(
    tmp_path: Path, failure: Exception | None, wanted: type[Exception]
) -> None:
    """A server that has just started takes messages before its streams do."""
    sink: NatsSink[str] = NatsSink(["nats://127.0.0.1:1"], "words", id="counts", folder=tmp_path)
    sink.setup(CONTEXT)
    answers: list[Exception | None] = [nats.js.errors.NoStreamResponseError(), failure]

    def call(ask: object) -> None:
        if (given := answers.pop(0)) is not None:
            raise given

    try:
        sink.put("x")
        sink.prepare(1)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sink._connection, "call", call)
            with pytest.raises(wanted):
                sink.commit(1)
    finally:
        sink.close()
    assert answers == []


def test_results_are_visible_with_their_checkpoint_and_once(nats_server: NatsServer, tmp_path: Path) -> None:
    """A task that died in its commit publishes again, and JetStream drops what it has."""
    stream = nats_server.make()
    given: NatsSink[str] = NatsSink([nats_server.url], stream, id="counts", folder=tmp_path)
    sink, again = (pickle.loads(pickle.dumps(given)) for _ in range(2))
    sink.setup(CONTEXT)
    again.setup(CONTEXT)
    try:
        for checkpoint in (1, 2):
            for number in range(300):
                sink.put(f"{checkpoint} {number}")
            sink.prepare(checkpoint)
        assert nats_server.values(stream) == []
        copies = [(path, path.read_bytes()) for path in tmp_path.glob("*.000000000001.staged")]
        sink.commit(1)
        wanted = [f"1 {number}" for number in range(300)]
        assert nats_server.values(stream) == wanted
        for path, data in copies:
            path.write_bytes(data)  # as if it had died before it removed the file
        again.restore(1)
        assert nats_server.values(stream) == wanted
        assert list(tmp_path.iterdir()) == []  # checkpoint 2 was never complete
    finally:
        sink.close()
        again.close()


def test_commit_fails_while_the_server_is_away_and_results_wait(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore does not fail then, or the task would be given up."""
    monkeypatch.setattr(connection, "_ANSWER_S", 2.0)
    stream = nats_server.make()
    sink: NatsSink[str] = NatsSink([nats_server.url], stream, id="counts", folder=tmp_path)
    sink.setup(CONTEXT)
    try:
        sink.put("x")
        sink.prepare(1)
        nats_server.kill()
        with pytest.raises(UnreachableError, match="does not answer"):
            sink.commit(1)
        sink.restore(1)
        nats_server.start()
        sink.commit(1)
    finally:
        nats_server.start()
        sink.close()
    assert nats_server.values(stream) == ["x"]
    other: NatsSink[str] = NatsSink([nats_server.url], "nobody", id="others", folder=tmp_path)
    other.setup(CONTEXT)
    try:
        other.put("x")
        other.prepare(1)
        with pytest.raises(ConnectorError, match="no stream takes the subject 'nobody'"):
            other.commit(1)
    finally:
        other.close()


@pytest.fixture
def sandbox_programs() -> Path:
    return Path(__file__).parent


def test_counts_are_exact_whatever_dies(nats_server: NatsServer, sandbox: Sandbox, tmp_path: Path) -> None:
    """Positions, state and results come back from one checkpoint."""
    nats_server.start()
    source, target = nats_server.make(), nats_server.make()
    words = [f"w{number % 7}" for number in range(700)]
    nats_server.fill(source, words[:350])
    places = ("--url", nats_server.url, "--source", source, "--target", target, "--folder", str(tmp_path / "staged"))
    run = sandbox.start("counting.py", args=places)
    run.until(lambda: len(nats_server.values(target)) >= 350, "results of the first half", SEEN_S)
    before = {each.pid for each in run.processes("instance", "/messages")}
    run.processes("instance", "/messages")[0].kill()
    run.until(lambda: {each.pid for each in run.processes("instance", "/messages")} - before, "another task", SEEN_S)
    nats_server.kill()
    nats_server.start()
    nats_server.fill(source, words[350:])
    run.until(lambda: len(nats_server.values(target)) >= 700, "all results", SEEN_S)
    counts: Counter[str] = Counter()
    wanted = []
    for word in words:
        counts[word] += 1
        wanted.append(f"{word} {counts[word]}")
    assert sorted(nats_server.values(target)) == sorted(wanted)
