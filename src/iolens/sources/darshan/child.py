"""The process that reads Darshan logs for another one (`isolated.py`), within bounds of memory."""

from __future__ import annotations

import mmap
import os
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from iolens.sources.darshan.isolated import MEMORY_BYTES, serve


def main(pipe: int, shared: int) -> None:
    """Answer requests on a descriptor; the other one is where to say what is being read."""
    import iolens.sources.darshan.rows  # noqa: F401 (what is imported now does not count against the limit)

    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)  # the library prints what it finds wrong
    serve(Connection(pipe), mmap.mmap(shared, mmap.PAGESIZE))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
