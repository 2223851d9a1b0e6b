"""How many files a server may open."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from iolens.web.access import connections
from iolens.web.serve_config import ServeConfig
soft, hard = map(int, {limits!r})
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
connections.listening_settings(ServeConfig())
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], connections._most_connections())
"""


@pytest.mark.parametrize(
    ("limits", "files", "connections"),
    [((1024, 20_000), 16_000, 4000), ((256, 512), 512, 256), ((17_000, 20_000), 17_000, 4000)],
)
def test_the_limit_of_open_files_is_raised_as_far_as_needed(
    limits: tuple[int, int], files: int, connections: int
) -> None:
    words = [sys.executable, "-c", PROGRAM.format(limits=limits)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(files), str(connections)]
