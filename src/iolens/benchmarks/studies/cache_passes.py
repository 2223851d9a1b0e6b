"""The passes over one file of the cache study, in a process of its own so that its memory can be limited.

`python -m iolens.benchmarks.studies.cache_passes FILE SIZE BLOCK` prints a JSON list: write, write with its fsync, read
again, read after the page cache was dropped.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from iolens.benchmarks.studies.sequential_file import drop_from_cache, read_file, write_file


def measured_passes(path: Path, size: int, block: int) -> list[dict[str, object]]:
    """Seconds and calls of each pass."""

    def check() -> None:
        """Whoever started us watches the time."""

    began = time.perf_counter()
    written = write_file(path, size, block, direct=False, fsync=False, check=check)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    synced_s = time.perf_counter() - began
    read_file(path, size, block, direct=False, check=check)  # what fits is in memory now
    again = read_file(path, size, block, direct=False, check=check)
    drop_from_cache(path)
    dropped = read_file(path, size, block, direct=False, check=check)
    return [
        {"direction": "write", "fsync": False, "calls": written.calls, "seconds": written.seconds},
        {"direction": "write", "fsync": True, "calls": written.calls, "seconds": synced_s},
        {"direction": "read", "page_cache": "warm", "calls": again.calls, "seconds": again.seconds},
        {"direction": "read", "page_cache": "dropped", "calls": dropped.calls, "seconds": dropped.seconds},
    ]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured_passes(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
