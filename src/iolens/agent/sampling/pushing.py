"""The short-lived child that pushes: finished segments of a spool to a hub, each deleted once the hub has it.

`python -m iolens.agent.sampling.pushing SPOOL URL TOKEN_FILE CA_FILE` prints one line of JSON. It may be killed at any
time and run again. Standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iolens.agent.sampling.hub_client import HubAddress, HubClient, HubError, SegmentRefusedError
from iolens.agent.sampling.sampler import rss_bytes
from iolens.agent.sampling.shipper import UNREACHABLE, Shipment, put_aside, take, tell
from iolens.agent.sampling.spool import BAD, SHIP_LOCK, locked, refuse_foreign, waiting
from iolens.errors import IolensError
from iolens.messages import set_log

SEGMENTS_PER_PUSH: Final = 200


def push_spool(directory: Path, hub: HubAddress, most: int = SEGMENTS_PER_PUSH) -> Shipment:
    """Push finished segments, oldest first, until all are with the hub or it takes no more for now."""
    done = Shipment()
    refuse_foreign(directory)
    with locked(directory, SHIP_LOCK, wait=False) as mine:
        if mine:
            try:
                with HubClient(hub) as client:
                    while done.shipped + done.bad < most and (taken := take(directory, 1)):  # others can be thinned
                        _push_one(taken[0], client, done)
            except HubError as error:
                done.error, done.wait_s = str(error), error.wait_s
        done.left = len(waiting(directory))
    return done


def _push_one(path: Path, client: HubClient, done: Shipment) -> None:
    try:
        client.push(path.stem, path)
    except SegmentRefusedError as error:
        done.bad += 1
        done.tell(f"{path}: moved to {BAD}/: {error}")
        put_aside(path, BAD, str(error))
    else:
        path.unlink()
        done.shipped += 1


def pushed(directory: Path, hub: HubAddress) -> tuple[Shipment, int]:
    """Push once; what was done, and an exit code: 0 done, 3 something put aside, 75 not everything is with the hub."""
    try:
        done = push_spool(directory, hub)
    except (IolensError, OSError) as error:
        done = Shipment(error=str(error))
    done.rss_bytes = rss_bytes()
    return done, UNREACHABLE if done.error else 3 if done.bad else 0


def main(arguments: Sequence[str]) -> int:
    """Push once, and print what was done."""
    directory, url, token_file, ca_file = arguments
    set_log(True)
    done, code = pushed(Path(directory), HubAddress.of(url, token_file, ca_file))
    tell(done)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
