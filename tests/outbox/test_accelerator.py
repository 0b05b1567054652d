"""The clients of Spedo, Redis and Valkey, against servers that behave and servers that do not."""

import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lease.errors import AcceleratorError
from lease.outbox import Accelerator, connect, dispatch, pending, receive, record
from lease.outbox._reader import Reader
from lease.outbox.accelerator import Address, address
from tests.support.chaos import ChaosProxy
from tests.support.outbox import rows, unchanged
from tests.support.refused import Str
from tests.support.resp import SpedoServer

PAYLOAD = b'{"event_type":"made","id":"a","payload_json":"1"}'


@pytest.fixture
def queue(spedo: SpedoServer) -> Iterator[Any]:
    """A client of the strict server, with a short time-out."""
    with closing(connect(spedo.url, key="q", timeout_s=0.3)) as client:
        yield client


@pytest.fixture(params=["spedo", "valkey"])
def either(request: pytest.FixtureRequest) -> Iterator[Accelerator]:
    """A client of each server, on a key of its own."""
    server = request.getfixturevalue(request.param)
    url = server.url if request.param == "spedo" else request.getfixturevalue("valkey_url")
    with closing(connect(url)) as client:
        yield client


def test_queue_is_first_in_first_out(either: Accelerator):
    """Both dialects push, tell the length, and pop in order until nothing is left."""
    either.ping()

    assert either.pop(3) == []
    assert [either.push(b"1"), either.push(b"\r\n\x00\xff"), either.push(b"")] == [1, 2, 3]
    assert either.pop(1) == [b"1"]
    assert either.pop(10) == [b"\r\n\x00\xff", b""]
    assert either.pop(10) == []


def test_queue_takes_the_largest_payload(either: Accelerator):
    """A copy of twice the largest payload comes back whole."""
    item = b"x" * 2**21
    either.push(item)

    assert either.pop(2) == [item]


def test_queue_connects_again_after_close(either: Accelerator):
    """A client that was closed can be used on."""
    either.push(b"1")
    either.close()
    either.close()

    assert either.pop(1) == [b"1"]


def test_queues_have_keys_of_their_own(spedo: SpedoServer):
    """Without a key no two clients share one; with one they do."""
    with (
        closing(connect(spedo.url)) as first,
        closing(connect(spedo.url)) as second,
        closing(connect(spedo.url, key=first.key)) as third,
    ):
        first.push(b"1")
        assert first.key != second.key
        assert second.pop(1) == []
        assert third.pop(1) == [b"1"]


def test_server_sees_four_commands_and_no_more(spedo: SpedoServer):
    """No greeting of redis-py's own: every word that a Spedo server gets is one it knows."""
    with closing(connect(spedo.url, key="q", priority=7, family="billing")) as client:
        client.ping()
        client.push(b"x")
        client.pop(16)

    assert spedo.log == [
        [b"PING"],
        [b"QPUSH", b"q", b"x", b"PRIORITY", b"7", b"FAMILY", b"billing"],
        [b"QPOP", b"q", b"16"],
    ]
    assert spedo.connections == 1


@pytest.mark.parametrize(
    ("username", "words"),
    [(None, [b"AUTH", b"s3cret"]), ("app", [b"AUTH", b"app", b"s3cret"])],
)
def test_password_is_sent_first(username: str | None, words: list[bytes]):
    """AUTH comes before anything else, with the user where there is one."""
    with SpedoServer("s3cret", username) as server:
        target = address(server.url, username=username, password="s3cret")
        with closing(connect(target, key="q")) as client:
            client.push(b"x")
            client.close()
            client.ping()

    assert server.log[0] == server.log[2] == words
    assert server.verbs == [b"AUTH", b"QPUSH", b"AUTH", b"PING"]


def test_user_without_a_password_is_not_sent(spedo: SpedoServer):
    """A user alone is no credential."""
    with closing(connect(address(spedo.url, username="app"))) as client:
        client.ping()

    assert spedo.verbs == [b"PING"]


@pytest.mark.parametrize(("username", "password"), [(None, "wrong"), ("app", "s3cret")])
def test_wrong_password_is_told(username: str | None, password: str):
    """Neither credential appears in the error, and nothing was sent without them."""
    with SpedoServer("s3cret") as server:
        target = address(server.url, username=username, password=password)
        with closing(connect(target)) as client, pytest.raises(AcceleratorError) as raised:
            client.push(b"x")

    assert str(raised.value) == (
        f"spedo server 127.0.0.1:{server.port}: "
        "AUTH was refused: WRONGPASS invalid username or password"
    )
    assert server.verbs == [b"AUTH"]


def test_missing_password_is_told():
    """A server that wants one refuses the command."""
    with (
        SpedoServer("s3cret") as server,
        closing(connect(server.url)) as client,
        pytest.raises(AcceleratorError, match="PING was refused: NOAUTH Authentication"),
    ):
        client.ping()


def test_password_is_not_repeated_from_the_server(spedo: SpedoServer):
    """A server that does not know AUTH may quote it; the error does not, and stays one line."""
    spedo.misbehave(
        "AUTH", b"-ERR unknown command 'AUTH' with 's3cret'\x1b[31m" + b"x" * 999 + b"\r\n"
    )
    target = address(spedo.url, password="s3cret")
    with closing(connect(target)) as client, pytest.raises(AcceleratorError) as raised:
        client.ping()

    assert "AUTH was refused: ERR unknown command 'AUTH' with '***' [31mxxx" in str(raised.value)
    assert "s3cret" not in str(raised.value)
    assert len(str(raised.value)) < 300


FAILURES = [
    # verb, reply, what happens then, what the error says
    ("PING", b"+NOPE\r\n", "stay", "PING was answered with b'NOPE', not PONG"),
    ("PING", b":1\r\n", "stay", "PING was answered with 1, not PONG"),
    ("PING", b"$-1\r\n", "stay", "PING was answered with a NoneType, not PONG"),
    ("PING", b"-ERR no\r\n", "stay", "PING was refused: ERR no"),
    ("PING", b"", "close", "the server closed the connection without a reply"),
    ("PING", b"", "hang", "no answer within 0.3 s"),
    ("QPUSH", b"+OK\r\n", "stay", "QPUSH was answered with b'OK', not the queue's length"),
    ("QPUSH", b"$1\r\n1\r\n", "stay", "QPUSH was answered with b'1', not the queue's length"),
    ("QPUSH", b":-1\r\n", "stay", "QPUSH was answered with -1, not the queue's length"),
    ("QPUSH", b"*0\r\n", "stay", "QPUSH was answered with an array of 0, not the queue's length"),
    ("QPUSH", b"-OOM full\r\n", "stay", "QPUSH was refused: OOM full"),
    ("QPUSH", b"", "close", "the server closed the connection without a reply"),
    ("QPUSH", b":1", "close", "the server closed the connection in the middle of a reply"),
    ("QPUSH", b":1", "hang", "no answer within 0.3 s"),
    ("QPOP", b"+OK\r\n", "stay", "QPOP was answered with b'OK', not an array of items"),
    ("QPOP", b":1\r\n", "stay", "QPOP was answered with 1, not an array of items"),
    ("QPOP", b"$1\r\nx\r\n", "stay", "QPOP was answered with b'x', not an array of items"),
    ("QPOP", b"*1\r\n:1\r\n", "stay", "QPOP was answered with an array of 1, not an array of"),
    ("QPOP", b"*1\r\n$-1\r\n", "stay", "QPOP was answered with an array of 1, not an array of"),
    ("QPOP", b"*3\r\n" + b"$0\r\n\r\n" * 3, "stay", "an array of 3, not at most 2 items"),
    ("QPOP", b"-WRONGTYPE no\r\n", "stay", "QPOP was refused: WRONGTYPE no"),
    ("QPOP", b"*1\r\n$5\r\nab", "close", "the server closed the connection in the middle of a"),
    ("QPOP", b"*1\r\n", "close", "the server closed the connection without a reply"),
    ("QPOP", b"*1\r\n$5\r\nab", "hang", "no answer within 0.3 s"),
    # A server of another kind, or out of its mind.
    ("PING", b"HTTP/1.1 400 Bad Request\r\n\r\n", "close", "malformed reply, b'HTTP/1.1 400 Bad"),
    ("PING", b"\r\n", "stay", "a malformed reply, b''"),
    ("PING", b"%1\r\n+a\r\n+b\r\n", "stay", "a malformed reply, b'%1'"),
    ("PING", b"+" + b"x" * 70_000, "stay", "a malformed reply, a line of more than 65536 bytes"),
    ("QPUSH", b":\r\n", "stay", "a malformed reply, b':'"),
    ("QPUSH", b":1x\r\n", "stay", "a malformed reply, b':1x'"),
    ("QPUSH", b": 1\r\n", "stay", "a malformed reply, b': 1'"),
    ("QPUSH", b":" + b"9" * 19 + b"\r\n", "stay", "a malformed reply, b':999"),
    ("QPOP", b"*x\r\n", "stay", "a malformed reply, b'*x'"),
    ("QPOP", b"*-2\r\n", "stay", "a malformed reply, an array of -2 items"),
    ("QPOP", b"*10001\r\n", "stay", "a malformed reply, an array of 10001 items"),
    ("QPOP", b"*1\r\n*0\r\n", "stay", "a malformed reply, b'*0'"),
    ("QPOP", b"*1\r\n+a\r\n", "stay", "a malformed reply, b'+a'"),
    ("QPOP", b"*1\r\n-a\r\n", "stay", "a malformed reply, b'-a'"),
    ("QPOP", b"*1\r\n$-2\r\n", "stay", "a malformed reply, a length of -2 bytes"),
    ("QPOP", b"*1\r\n$99999999999\r\n", "stay", "a malformed reply, a length of 99999999999 b"),
    ("QPOP", b"*1\r\n$2\r\nabcd\r\n", "stay", "a malformed reply, a value of 2 bytes goes on w"),
    ("QPOP", b"*1\r\n$3\r\nab\r\n\r\n", "stay", "a malformed reply, a value of 3 bytes goes on"),
]


@pytest.mark.parametrize(("verb", "reply", "then", "told"), FAILURES)
def test_failure_is_one_clear_error(
    spedo: SpedoServer, queue: Any, verb: str, reply: bytes, then: str, told: str
):
    """Which server, and what; the command went out once, and the next one starts afresh."""
    call = {"PING": queue.ping, "QPUSH": lambda: queue.push(b"x"), "QPOP": lambda: queue.pop(2)}
    queue.ping()
    spedo.misbehave(verb, reply, then)

    with pytest.raises(AcceleratorError) as raised:
        call[verb]()
    assert str(raised.value).startswith(f"spedo server 127.0.0.1:{spedo.port}: ")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert spedo.verbs == [b"PING", verb.encode()]
    call[verb]()
    assert spedo.verbs == [b"PING", verb.encode(), verb.encode()]


@pytest.mark.parametrize(("verb", "reply", "then", "told"), FAILURES)
def test_failure_harms_no_record(
    spedo: SpedoServer, queue: Any, box: Any, outbox_path: Path, verb: str, reply: bytes,
    then: str, told: str
):  # fmt: skip
    """Whatever goes wrong, the outbox stays as it was, and the next round puts it right."""
    made = record(box, "made", {}, id="a")
    if verb == "QPOP":
        dispatch(box, queue, [made])
    spedo.misbehave(verb, reply, then, perform=True)

    call = {
        "PING": queue.ping,
        "QPUSH": lambda: dispatch(box, queue, pending(box)),
        "QPOP": lambda: receive(queue, 2),
    }
    with unchanged(box, outbox_path), pytest.raises(AcceleratorError):
        call[verb]()
    assert pending(box) == [made]
    before = rows(box)[0]["dispatch_count"]
    dispatch(box, queue, pending(box))
    assert made in receive(queue, 9)
    assert rows(box)[0]["dispatch_count"] == before + 1


def test_pop_is_asked_once(spedo: SpedoServer, queue: Any):
    """What a failed pop has removed is gone; asking again by itself would remove more."""
    for item in (b"1", b"2", b"3"):
        queue.push(item)
    spedo.misbehave("QPOP", b"", "close", perform=True)

    with pytest.raises(AcceleratorError):
        queue.pop(1)
    assert spedo.verbs.count(b"QPOP") == 1
    assert queue.pop(9) == [b"2", b"3"]


def test_timeout_bounds_the_whole_answer():
    """A server that sends a byte now and then cannot hold the client for longer."""

    class Dripping(SpedoServer):
        def serve(self, client: socket.socket) -> None:
            client.recv(4096)
            client.sendall(b"*1\r\n$100\r\n")
            while not self.stopping.wait(0.05):
                client.sendall(b"x")

    with Dripping() as server, closing(connect(server.url, timeout_s=0.3)) as client:
        started = time.monotonic()
        with pytest.raises(AcceleratorError, match=r"no answer within 0\.3 s"):
            client.pop(1)
        assert 0.3 <= time.monotonic() - started < 3


def test_timeout_is_seen_between_two_fragments():
    """A time-out that passes while there is something to read is one all the same."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = Reader(0)
        reader.on_connect(SimpleNamespace(_sock=ours, socket_timeout=0))
        theirs.sendall(b"+PONG\r\n")
        with pytest.raises(TimeoutError):
            reader.read_response()


def test_stray_reply_is_taken_for_no_other(spedo: SpedoServer, queue: Any):
    """A reply that nobody asked for costs a new connection, and is never read."""
    queue.ping()
    spedo.misbehave("QPUSH", b":1\r\n:99\r\n", perform=True)
    assert queue.push(b"x") == 1

    assert queue.push(b"y") == 2
    assert queue.pop(9) == [b"x", b"y"]
    assert spedo.connections == 2


def test_idle_connection_that_was_closed_is_replaced(spedo: SpedoServer, queue: Any):
    """A server may hang up on an idle client; the next command is not lost by it."""
    spedo.misbehave("PING", b"+PONG\r\n", "close")
    queue.ping()
    deadline = time.monotonic() + 10
    while not queue._connection.can_read() and time.monotonic() < deadline:
        time.sleep(0.01)

    assert queue.push(b"x") == 1
    assert spedo.connections == 2


@pytest.mark.parametrize("url", ["spedo://127.0.0.1:{}", "redis://127.0.0.1:{}/3"])
def test_unreachable_server_is_told(url: str):
    """Nobody listens: host, port and reason."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with closing(connect(url.format(port))) as client, pytest.raises(AcceleratorError) as raised:
        client.ping()

    assert str(raised.value).startswith(f"{url.partition(':')[0]} server 127.0.0.1:{port}: ")
    assert "Connection refused" in str(raised.value)


def test_unreachable_socket_is_told(tmp_path: Path):
    """No socket at the path: the path and the reason."""
    with (
        closing(connect(f"redis+unix://{tmp_path}/no%20socket")) as client,
        pytest.raises(AcceleratorError, match=f"redis server {tmp_path}/no socket: .*No such"),
    ):
        client.ping()


def test_interrupt_drops_the_connection(
    spedo: SpedoServer, queue: Any, monkeypatch: pytest.MonkeyPatch
):
    """A reply that was waited for in vain is not taken for the next one's."""
    queue.ping()
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "_line", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.push(b"x")

    deadline = time.monotonic() + 10
    while not spedo.queues[b"q"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert queue.pop(1) == [b"x"]
    assert spedo.connections == 2


def interrupted(_reader: Reader) -> bytes:
    """Stand in for a read that the user breaks off."""
    raise KeyboardInterrupt


def test_database_is_selected(valkey: Any):
    """A number in the URL chooses the database; one that is not there is told."""
    path = valkey.unix_socket_path
    key = uuid.uuid4().hex
    with (
        ChaosProxy(lambda: unix(path), lambda: "pass") as proxy,
        closing(connect(f"redis://127.0.0.1:{proxy.port}/3", key=key)) as third,
        closing(connect(f"valkey://127.0.0.1:{proxy.port}/", key=key)) as none,
        closing(connect(f"valkey://127.0.0.1:{proxy.port}/9999", key=key)) as missing,
    ):
        third.push(b"x")
        assert none.pop(1) == []
        assert third.pop(1) == [b"x"]
        with pytest.raises(AcceleratorError, match="SELECT was refused: ERR DB index"):
            missing.ping()


def unix(path: Path) -> socket.socket:
    """Connect to a Unix socket."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(path))
    return sock


def test_greeting_wants_ok(spedo: SpedoServer):
    """AUTH that is answered with something else was not understood."""
    spedo.misbehave("AUTH", b"+QUEUED\r\n")
    with (
        closing(connect(address(spedo.url, password="p"))) as client,
        pytest.raises(AcceleratorError, match="AUTH was answered with b'QUEUED', not OK"),
    ):
        client.ping()


def test_wrong_type_of_key_is_told(valkey_url: str):
    """A key that somebody else uses for something else is an error, and is left alone."""
    with closing(connect(valkey_url)) as client:
        client._connection.send_command("SET", client.key, "mine")
        client._connection.read_response()
        with pytest.raises(AcceleratorError, match="RPUSH was refused: WRONGTYPE"):
            client.push(b"x")
        with pytest.raises(AcceleratorError, match="LPOP was refused: WRONGTYPE"):
            client.pop(1)


SERVER = Address("spedo", "h", 6380, "", 0, None, None)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("spedo://h", SERVER),
        ("spedo://h/", SERVER),
        ("SPEDO://H:1", SERVER._replace(port=1)),
        ("spedo://u%40:p%2f@h:65535", SERVER._replace(port=65535, username="u@", password="p/")),
        ("spedo://:p@h", SERVER._replace(password="p")),
        ("redis://h", SERVER._replace(dialect="redis", port=6379)),
        ("redis://h/12", SERVER._replace(dialect="redis", port=6379, database=12)),
        ("valkey://[::1]/0", SERVER._replace(dialect="valkey", host="::1", port=6379)),
        ("redis+unix:///a%20b", Address("redis", "", 6379, "/a b", 0, None, None)),
        ("valkey+unix:///s", Address("valkey", "", 6379, "/s", 0, None, None)),
    ],
)
def test_address_reads_a_url(url: str, found: Address):
    """Scheme, host, port, database and credentials, with their defaults."""
    assert address(url) == found


def test_address_prefers_the_credentials_given():
    """What the environment says stands in for what the URL says."""
    assert address("spedo://a:b@h", username="c", password="d") == SERVER._replace(
        username="c", password="d"
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "h:6380",
        "http://h",
        "rediss://h",
        "spedo://",
        "spedo://:6380",
        "spedo://h:0",
        "spedo://h:65536",
        "spedo://h:x",
        "spedo://h/1",
        "spedo://h?db=1",
        "redis://h#a",
        "redis://h/x",
        "redis://h/1/2",
        "redis://h/\u0661",
        "redis://[::1",
        "redis+unix://",
        "redis+unix:///",
        "redis+unix://h/s",
        "spedo+unix:///s",
    ],
)
def test_address_refuses(url: str):
    """What is no URL of such a server is refused, and its password is not quoted."""
    with pytest.raises(ValueError, match="the URL of the server "):
        address(url)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("spedo://u:p@h", "spedo server h:6380"),
        ("valkey://[::1]", "valkey server [::1]:6379"),
        ("redis+unix:///s", "redis server /s"),
    ],
)
def test_address_has_a_name_without_credentials(url: str, name: str):
    """Messages name the server, and never its password."""
    assert address(url).name == name
    assert connect(url).name == name


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("key", ""),
        ("key", "a b"),
        ("key", "a" * 201),
        ("key", Str("a")),
        ("key", b"a"),
        ("family", ""),
        ("family", None),
        ("priority", -1),
        ("priority", True),
        ("timeout_s", 0),
        ("timeout_s", float("nan")),
        ("timeout_s", float("inf")),
        ("timeout_s", True),
        ("timeout_s", "3"),
        ("timeout_s", None),
    ],
)
def test_connect_refuses(argument: str, value: Any):
    """An unusable argument is refused before anything is reached."""
    with pytest.raises(ValueError, match=f"{argument} must be"):
        connect("spedo://h", **{argument: value})
