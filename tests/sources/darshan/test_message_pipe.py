"""Messages of data pass whole between two processes; what is no message is refused before it takes memory."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from iolens.sources.darshan.messages import (
    LONGEST_BODY,
    LONGEST_HEAD,
    MessageError,
    MessagePipe,
    PipeMessage,
    StandstillError,
)

Pair = tuple[MessagePipe, MessagePipe]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = MessagePipe.pair()
    yield ours, theirs
    for end in (ours, theirs):
        with contextlib.suppress(OSError):  # closed by the test
            end.close()


def raw(head: object, body: bytes = b"", head_bytes: int | None = None, body_bytes: int | None = None) -> bytes:
    """A message as it lies in a pipe, with any lengths."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    lengths = (len(text) if head_bytes is None else head_bytes, len(body) if body_bytes is None else body_bytes)
    return struct.pack("QQ", *lengths) + text + body


def test_long_and_short_messages_arrive_in_order(pair: Pair) -> None:
    ours, theirs = pair
    long = np.arange(1_000_000)
    sent = [PipeMessage({"a": 1}), PipeMessage({}, [b"abc", long, b"", np.array([], np.int64), np.array([True])]),
            PipeMessage({"b": [None, "ü\udc80"]}, [b"x"] * 3000)]  # fmt: skip
    sender = threading.Thread(target=lambda: [*map(theirs.send, sent)])  # more than a pipe holds
    sender.start()
    received = [ours.receive() for _ in sent]
    sender.join()
    assert [message.head for message in received] == [message.head for message in sent]
    assert [bytes(buffer) for buffer in received[1].buffers] == [b"abc", long.tobytes(), b"", b"", b"\x01"]
    assert b"".join(received[2].buffers) == b"x" * 3000
    ours.send(PipeMessage({"back": True}))
    assert theirs.receive() == PipeMessage({"back": True}, [])


def test_buffers_lie_at_multiples_of_eight_bytes_and_are_not_copied(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(PipeMessage({}, [b"abc", np.array([5, 7]), np.array([9])]))
    _, first, second = (np.frombuffer(buffer, np.uint8) for buffer in ours.receive().buffers)
    assert first.ctypes.data % 8 == 0
    assert second.ctypes.data - first.ctypes.data == 16


def test_it_can_be_waited_for_and_its_end_is_noticed(pair: Pair) -> None:
    ours, theirs = pair
    assert not ours.poll(0.0)
    theirs.send(PipeMessage({"a": 1}))
    assert ours.poll(0.0)
    assert ours.receive().head == {"a": 1}
    theirs.close()
    assert ours.poll(0.0)
    with pytest.raises(EOFError):
        ours.receive()
    with pytest.raises(BrokenPipeError):
        ours.send(PipeMessage({}))


@pytest.mark.parametrize("length", [3, 16, 20, 40])
def test_a_message_that_is_cut_off_is_no_message(pair: Pair, length: int) -> None:
    ours, theirs = pair
    theirs._write([raw({"sizes": [16]}, bytes(16))[:length]])
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive()


def test_a_message_that_stops_in_the_middle_is_not_waited_for(pair: Pair) -> None:
    ours, theirs = pair
    theirs._write([raw({"sizes": [16]}, bytes(16))[:-1]])
    with pytest.raises(StandstillError):
        ours.receive(0.01)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (raw({"sizes": []}, head_bytes=LONGEST_HEAD + 1), "a message of 1048577 and 0 bytes"),
        (raw({"sizes": []}, head_bytes=2**63), "a message of 9223372036854775808"),
        (raw({"sizes": [8]}, body_bytes=LONGEST_BODY + 1), "1073741825 bytes"),
        (raw({"sizes": [8]}, body_bytes=2**64 - 1), "18446744073709551615 bytes"),
        (raw({"sizes": [8]}, bytes(16)), "buffers of 8 bytes in 16"),
        (raw({"sizes": [24]}, bytes(16)), "buffers of 24 bytes in 16"),
        (raw({"sizes": [-8, 24]}, bytes(16)), "no possible length"),
        (raw({"sizes": [2**63]}, bytes(16)), "no possible length"),
        (raw({"sizes": [8.0]}, bytes(8)), "no possible length"),
        (raw({"sizes": [True]}, bytes(8)), "no possible length"),
        (raw({"sizes": [0] * 5000}), "without a list of buffers"),
        (raw({"sizes": {}}), "without a list of buffers"),
        (raw({}), "without a list of buffers"),
        (raw([]), "without a list of buffers"),
        (raw(b"\xff\xfe{}"), "no JSON"),
        (raw(b""), "no JSON"),
        (raw(b"[" * 100_000), "no JSON"),
        (raw(b'{"sizes": [' + b"9" * 10_000 + b"]}"), "no JSON"),
        (raw(b"cos\nsystem\n(S'true'\ntR."), "no JSON"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(pair: Pair, content: bytes, reason: str) -> None:
    ours, theirs = pair
    sender = threading.Thread(target=theirs._write, args=([content],))
    sender.start()
    with pytest.raises(MessageError, match=reason):
        ours.receive()
    sender.join()


def test_an_announced_length_takes_no_memory_before_it_comes(pair: Pair) -> None:
    ours, theirs = pair
    sizes = [LONGEST_BODY]
    theirs._write([raw({"sizes": sizes}, bytes(1000), body_bytes=LONGEST_BODY)])
    theirs.close()
    tracemalloc.start()
    try:
        with pytest.raises(EOFError):
            ours.receive()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
