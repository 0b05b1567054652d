"""HttpSender.post: any document, judged as an event is."""

import json
import socket
from typing import Any

import pytest

from lease import Permanent
from lease.delivery import HttpSender
from tests.support.http import answer, request_of, server
from tests.support.refused import IDENTIFIERS


def test_post_sends_any_document() -> None:
    """The body is the document, the key its idempotency key; an acknowledgement is True."""
    heard: list[bytes] = []

    def handle(sock: socket.socket) -> None:
        heard.append(request_of(sock))
        sock.sendall(answer("200 OK", b'{"accepted": true}'))

    with server(handle) as url, HttpSender(url) as sender:
        assert sender.post("record-1", {"a": ["\u00e9", None]}) is True
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert json.loads(body) == {"a": ["\u00e9", None]}
    assert b"\r\nIdempotency-Key: record-1\r\n" in head


def test_post_judges_the_answer() -> None:
    """A refusal for good is Permanent, with the receiver's reason."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        sock.sendall(answer("409 Conflict", b'{"error": "other content"}'))

    with (
        server(handle) as url,
        HttpSender(url) as sender,
        pytest.raises(Permanent, match="answered 409: 'other content'"),
    ):
        sender.post("record-1", {})


@pytest.mark.parametrize("key", IDENTIFIERS)
def test_post_refuses_key(key: Any) -> None:
    """A key is an identifier; nothing is sent for another."""
    with (
        HttpSender("http://127.0.0.1:1/") as sender,
        pytest.raises(ValueError, match="key must be a str"),
    ):
        sender.post(key, {})
