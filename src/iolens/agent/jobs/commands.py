"""Running the command of `job run`: signals are the command's, and we stay for the report."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

NOT_STARTED: Final = 127  # as a shell has it


def run_command(command: Sequence[str], say: Callable[[str], None]) -> int:
    """The command's exit code, as a shell gives it."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror or error}")
        return NOT_STARTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command too
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    code = process.wait()
    return 128 - code if code < 0 else code
