"""A real terminal of a fixed size: tmux with a server of its own, gone at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.live.spark_cluster import ComponentMissing


class Terminal:
    """One command in one window; its keys, and what it shows."""

    def __init__(self, command: list[str], size: tuple[int, int], folder: Path, **environment: str) -> None:
        if shutil.which("tmux") is None:
            raise ComponentMissing("no tmux on PATH: install the package tmux")
        self.socket = f"iolens-{uuid.uuid4().hex[:12]}"
        self.command, self.size, self.folder = command, size, folder
        self.environment = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **environment}

    def __enter__(self) -> Terminal:
        width, height = map(str, self.size)
        given = [word for name, value in self.environment.items() for word in ("-e", f"{name}={value}")]
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "-c", str(self.folder), *given,
            *self.command,
        )  # fmt: skip
        self.path = Path(self._tmux("display-message", "-p", "#{socket_path}").stdout.strip())
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)
        self.path.unlink(missing_ok=True)  # tmux leaves it behind

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended yet (the window closes with it)."""
        return self._tmux("has-session", check=False).returncode == 0

    @property
    def pids(self) -> list[int]:
        """The processes of the window and of the server."""
        result = self._tmux("display-message", "-p", "#{pid} #{pane_pid}").stdout.split()
        return [int(item) for item in result]

    def press(self, *keys: str) -> None:
        """Keys by their tmux names (`Enter`, `Left`, `Space`) or as characters."""
        for key in keys:
            self._tmux("send-keys", key)
            if key == "Escape":
                time.sleep(0.5)  # what follows at once would be taken for Alt and that key

    def type(self, text: str) -> None:
        """Characters as they are."""
        self._tmux("send-keys", "-l", text)

    def click(self, column: int, row: int) -> None:
        """A mouse click, counted from one, as the terminal would report it (SGR)."""
        for end in ("M", "m"):
            self._tmux("send-keys", "-l", f"\x1b[<0;{column};{row}{end}")

    def resize(self, width: int, height: int) -> None:
        """Make the window narrower or wider."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def screen(self) -> str:
        """What can be read now."""
        return self._tmux("capture-pane", "-p").stdout

    def until(self, true: Callable[[str], bool], seconds: float = 60.0) -> str:
        """What can be read once it is as wanted."""
        end = time.monotonic() + seconds
        while True:
            shown = self.screen()
            if true(shown):
                return shown
            assert time.monotonic() < end, f"it did not come to that:\n{shown}"
            time.sleep(0.1)

    def _tmux(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["tmux", "-L", self.socket, *arguments]
        environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "NO_COLOR")}
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", check=check, env=environment | self.environment
        )


def is_alive(pid: int) -> bool:
    """Whether a process still runs (one that waits to be buried does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
