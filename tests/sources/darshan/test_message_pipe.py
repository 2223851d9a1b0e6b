"""Objects pass whole between two processes, however long they are."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from iolens.sources.darshan.message_pipe import MessagePipe


def test_long_and_short_objects_arrive_in_order() -> None:
    ours, theirs = MessagePipe.pair()
    sent = [("part", 1), np.arange(1_000_000), "", {"a": [None]}]
    sender = threading.Thread(target=lambda: [*map(theirs.send, sent)])  # more than a pipe holds
    sender.start()
    received = [ours.receive() for _ in sent]
    sender.join()
    assert received[1].tolist() == sent[1].tolist()  # type: ignore[attr-defined]
    assert [received[0], *received[2:]] == [sent[0], *sent[2:]]
    ours.send("back")
    assert theirs.receive() == "back"


def test_it_can_be_waited_for_and_its_end_is_noticed() -> None:
    ours, theirs = MessagePipe.pair()
    assert not ours.poll(0.0)
    theirs.send(1)
    assert ours.poll(0.0)
    assert ours.receive() == 1
    theirs.close()
    assert ours.poll(0.0)
    with pytest.raises(EOFError):
        ours.receive()
    with pytest.raises(BrokenPipeError):
        ours.send(1)


def test_an_object_that_is_cut_off_is_no_object() -> None:
    ours, theirs = MessagePipe.pair()
    theirs._write(b"\x08\0\0\0\0\0\0\0abc")
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive()
