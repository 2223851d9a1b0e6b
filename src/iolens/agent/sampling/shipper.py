"""The short-lived child that ships: finished segments into the store, each deleted once the store has it.

`python -m iolens.agent.sampling.shipper SPOOL STORE` prints one line of JSON. It may be killed at any time and run
again.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolens.agent.sampling.health import rss_bytes
from iolens.agent.sampling.private_files import refuse_foreign
from iolens.agent.sampling.segment_loading import (
    WRONG_CONTENT,
    OfferedSegment,
    booked_tally,
    put_aside,
    refuse_another_store,
    remember_store,
)
from iolens.agent.sampling.spool import BAD, CHANGE_LOCK, SHIP_LOCK, locked, sync_directory, waiting
from iolens.errors import InputError, IolensError
from iolens.messages import set_log
from iolens.sources.spool import CLOSED, STORED_AS, TAKEN

if TYPE_CHECKING:
    from iolens.store.ingest import Tally
    from iolens.store.store import Store

SEGMENTS_PER_RUN: Final = 20  # a child that writes for long grows
REASONS_KEPT: Final = 20
UNREACHABLE: Final = 75  # exit code: try again later


@dataclass(slots=True)
class Shipment:
    """What one run of the shipper did."""

    shipped: int = 0
    late: int = 0
    bad: int = 0
    left: int = 0
    samples: int = 0
    rows: int = 0
    older: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)
    error: str = ""
    wait_s: float = 0.0  # before the next run, as a hub asks
    rss_bytes: int = 0

    def count(self, tally: Tally) -> None:
        """Add what the store said of one segment."""
        self.samples += tally.samples
        self.rows += sum(tally.rows.values())
        self.older += tally.older
        self.refused += tally.refused
        self.tell(*(str(problem) for problem in tally.problems))

    def tell(self, *reasons: str) -> None:
        """Keep the first reasons."""
        self.reasons += reasons[: REASONS_KEPT - len(self.reasons)]


def ship(directory: Path, url: str, most: int = SEGMENTS_PER_RUN) -> Shipment:
    """Ship the oldest finished segments; StoreError when the store cannot be reached."""
    from iolens.store.store import Store

    done = Shipment()
    refuse_foreign(directory)
    with locked(directory, SHIP_LOCK, wait=False) as mine:
        if not mine:
            done.left = len(waiting(directory))
            return done
        store = Store(url)
        refuse_another_store(directory, store)
        for path in take(directory, most):
            _ship_one(path, store, done)
            remember_store(directory, url)
        done.left = len(waiting(directory))
    return done


def take(directory: Path, most: int) -> list[Path]:
    """Segments of this run. From here on they are not thinned: the store may soon have a part of each."""
    with locked(directory, CHANGE_LOCK):
        taken = []
        for path in waiting(directory)[:most]:
            frozen = path.with_suffix(TAKEN)
            if path.suffix == CLOSED and frozen.exists():
                path.unlink()  # thinned while it was being taken: the whole one is there
                continue
            taken.append(path if path == frozen else path.rename(frozen))
        sync_directory(directory)
    return taken


def _ship_one(path: Path, store: Store, done: Shipment) -> None:
    """One segment into the store; then it goes, or aside when the store did not take all of it."""
    try:
        segment = OfferedSegment.open(path)
        capture = segment.capture()
        tally = store.ingest([capture], STORED_AS)
    except (InputError, *WRONG_CONTENT) as error:
        done.bad += 1
        done.tell(f"{path}: moved to {BAD}/: {error}")
        put_aside(path, BAD, str(error))
        return
    done.count(tally)
    fate = segment.settle(booked_tally(store, capture) if tally.already_present else tally)
    if fate in ("bad", "damaged"):
        done.bad += 1
        done.tell(f"{path}: moved to {BAD}/; what could be read is in the store")
    done.late += fate == "late"
    done.shipped += fate != "bad"


def main(arguments: list[str]) -> int:
    """Ship once; 0 done, 3 something put aside, 75 the store cannot be reached."""
    directory, url = arguments
    set_log(True)  # what the store says goes into the agent's log
    code = 0
    try:
        done = ship(Path(directory), url)
    except (IolensError, OSError) as error:
        done, code = Shipment(left=len(waiting(Path(directory))), error=str(error)), UNREACHABLE
    done.rss_bytes = rss_bytes()
    tell(done)
    return code or (3 if done.bad or done.late else 0)


def tell(done: Shipment) -> None:
    """One line of JSON to the agent that started us; where it was killed meanwhile, nobody listens."""
    try:
        sys.stdout.write(json.dumps(asdict(done)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed once more at the end


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # before the engines' bindings are torn down
