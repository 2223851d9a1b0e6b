"""A time by which an exchange must end, however slowly the other side goes on talking."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def deadline(seconds: float, open_socket: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Hang up when the time is over; whatever became of the exchange, that is a TimeoutError."""
    is_late = threading.Event()

    def hang_up() -> None:
        is_late.set()
        if (connection := open_socket()) is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise TimeoutError(f"no answer within {seconds:g} s")
