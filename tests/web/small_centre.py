"""A small simulated centre with something for every page: two days of two file systems, a culprit among their jobs.

Servers with job_stats, records of the scheduler, counters of nodes, Darshan logs where the library is installed,
fullness, two scans, readings of drives, rollups and a refused input.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iolens.api import OpenStore
from iolens.api.demo import CULPRIT_ID, demo_workload, loaded_runs, sampled_clients, victim_id
from iolens.records import Capture, Row
from iolens.simulator.activity import Activity
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.units import epoch_us, parse_time
from tests.analyses.contents_rows import DAY_US, scanned

START, END = parse_time("2026-01-05"), parse_time("2026-01-07")
DAYS, OSTS, SEED = 2, 4, 1
TB = 10**12
OWN, OTHER = "vera", "marco"  # the user of the weather model, and that of the culprit
OWN_JOB, OTHER_JOB = victim_id(), CULPRIT_ID
HOLDERS: dict[tuple[str | None, str | None], int] = {(OWN, "weather"): 12, (OTHER, "genomes"): 80, ("eve", None): 5}


def make_centre(place: Path) -> None:
    """The store, in about ten seconds of one core."""
    workload, url = demo_workload(START, DAYS), str(place)
    activity = Activity(workload, OSTS, SEED)
    sampled_clients(url, activity, END)
    runs = loaded_runs(url, activity, END, lambda label: None, hours=24 * DAYS)
    orders = [(workload, OSTS, True), (load_workload("scratch2"), 2, False)]
    for simulated, osts, with_jobs in orders:
        order = order_of(url, simulated, start=START, days=DAYS, osts=osts, seed=SEED, with_jobs=with_jobs)
        simulate_telemetry(order, workers=1, with_records=runs is None)
    store = Store(place)
    for number, time_us in enumerate((epoch_us(START), epoch_us(END) - DAY_US // 2)):
        _ingest(store, f"scan {number}", "scan", [Row("contents", row) for row in scanned(time_us, HOLDERS, number)])
    _ingest(store, "drives", "isdct", list(_drives()))
    refused = place.parent / "refused.txt"
    refused.write_text("this is no capture of anything\n", "utf-8")
    with OpenStore(url) as opened:
        opened.ingest(refused, source="lfs-df", filesystem="scratch")
    roll_up(store)


def _ingest(store: Store, name: str, source: str, rows: list[Row]) -> None:
    store.ingest([Capture(name, f"made-up/{name}", lambda: iter(rows))], source)


def _drives() -> Iterator[Row]:
    for number in range(4):
        for day in range(DAYS + 1):
            written = (50 + number) * TB + day * TB
            values: dict[str, Any] = {
                "time": epoch_us(START) + day * DAY_US, "filesystem": "scratch", "serial": f"drive{number}",
                "host": "oss0", "model": "a model", "capacity_bytes": TB, "host_write_bytes": written,
                "nand_write_bytes": 2 * written + number, "power_on_hours": 24.0 * (1000 + day), "wear_pct": 9.0,
            }  # fmt: skip
            yield Row("drives", values)
