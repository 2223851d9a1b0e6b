"""An agent without a machine: spools ticks of known counters through the real spool and pushes with the real client.

`python -m tests.hub.spooling_agent SPOOL HOST URL` runs until it is killed or asked to stop. A number is noted before
its tick is spooled (`reserved`) and after (`journal`), so that whoever kills it knows what must be in the store.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from iolens.agent.sampling.hub_client import HubAddress
from iolens.agent.sampling.pushing import push_spool
from iolens.agent.sampling.spool import Spool
from tests.hub.segments import T0, S, sample

TICKS_PER_SEGMENT = 4
TICK_S = 0.02


def main(arguments: list[str]) -> None:
    directory, host, url = Path(arguments[0]), arguments[1], arguments[2]
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    reserved, journal = directory.with_suffix(".reserved"), directory.with_suffix(".journal")
    with Spool.open(directory, 1 << 30, host) as spool, journal.open("a") as spooled:
        number = int(reserved.read_text()) if reserved.exists() and reserved.read_text() else 0
        while not asked:
            number += 1
            beside = reserved.with_suffix(".new")
            beside.write_text(str(number))
            beside.replace(reserved)
            assert spool.append(T0 + number * 5 * S, [sample(host, number)])
            os.write(spooled.fileno(), f"{number}\n".encode())
            if number % TICKS_PER_SEGMENT == 0:
                spool.close_segment()
                push_spool(directory, HubAddress(url))
            time.sleep(TICK_S)


if __name__ == "__main__":
    main(sys.argv[1:])
