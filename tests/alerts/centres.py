"""Small stores with one known fault each, from the 60th to the 120th minute, and checks of them at moving times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from iolens.alerts.results import AlertCheck
from iolens.api import OpenStore
from iolens.api.alerts import check_alerts
from iolens.models.transaction_time import GRACE_2012
from iolens.records import Row
from iolens.schema import TABLES, size_column
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import epoch_us
from tests.chosen_calibration import CONFIGURED
from tests.store.samples import capture

START = datetime(2026, 3, 2, tzinfo=UTC)
BEGIN, END, LAST = 60, 120, 200  # minutes: the fault, and the last row
TICK_S = 30
OSTS = tuple(f"scratch-OST{number:04x}" for number in range(4))
MIB = 1 << 20
WRITE_S = GRACE_2012.write.seconds(MIB)

Rows = dict[str, list[dict[str, Any]]]


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


def is_fault(second: float) -> bool:
    return BEGIN * 60 < second <= END * 60


def interval(end_s: float, length_s: float, **more: Any) -> dict[str, Any]:
    end = epoch_us(START) + round(end_s * 1e6)
    start = end - round(length_s * 1e6)
    return {
        "time": end, "start": start, "duration_s": float(length_s), "date": start // 86_400_000_000,
        "filesystem": "scratch", "source": "made-up", "after_reset": False, **more,
    }  # fmt: skip


def ticks(step_s: int = TICK_S) -> range:
    return range(step_s, LAST * 60 + 1, step_s)


def loads(pct: Callable[[str, float], float | None], targets: Sequence[str] = OSTS) -> Rows:
    """Sizes and bytes of writes of 1 MiB that keep each target busy for that share of the time; None: no row."""
    rows: Rows = {"target_sizes": [], "target_io": []}
    for target in targets:
        for end_s in ticks():
            share = pct(target, end_s)
            if share is not None:
                ios = round(share / 100 * TICK_S / WRITE_S)
                row = interval(end_s, TICK_S, target=target, target_kind="ost")
                rows["target_sizes"].append({**row, size_column("write", MIB): ios})
                rows["target_io"].append(
                    {**row, "write_bytes": ios * MIB, "read_bytes": 0, "write_ops": ios, "read_ops": 0}
                )
    return rows


def busy() -> Rows:
    """All targets are at 95 % in the fault and at 20 % else; job 4711 does most of it then."""
    rows = loads(lambda _, end_s: 95 if is_fault(end_s) else 20)
    rows["job_io"] = []
    for target in OSTS:
        for end_s in ticks(60):
            ios = round((0.95 if is_fault(end_s) else 0.2) * 60 / WRITE_S)
            shares = {"4711": 0.8, "4712": 0.1} if is_fault(end_s) else {"4712": 0.3, "4713": 0.3}
            row = interval(end_s, 60, target=target, target_kind="ost")
            rows["job_io"] += [
                {**row, "job_id": job, "write_ops": round(ios * share), "write_bytes": round(ios * share) * MIB}
                for job, share in shares.items()
            ]
    return rows


def silent() -> Rows:
    """One target sends no rows in the fault."""
    return loads(lambda target, end_s: None if target == OSTS[2] and is_fault(end_s) else 20)


def idle() -> Rows:
    """One target moves nothing in the fault, and reports that."""
    return loads(lambda target, end_s: 0 if target == OSTS[2] and is_fault(end_s) else 20)


def unbalanced() -> Rows:
    """One target carries twelve times the load of the others in the fault; they are not quite alike."""
    targets = [f"scratch-OST{number:04x}" for number in range(8)]
    return loads(
        lambda target, end_s: 90 if target == OSTS[2] and is_fault(end_s) else 6 + targets.index(target) / 4, targets
    )


def slow() -> Rows:
    """Reads of one target take 16 times as long in the fault."""
    rows: Rows = {"target_histograms": []}
    for target in OSTS:
        for end_s in ticks(60):
            factor = 16 if target == OSTS[2] and is_fault(end_s) else 1
            row = interval(end_s, 60, target=target, target_kind="ost", direction="read", histogram="io_time_ms")
            counts = {1: 120, 2: 60, 4: 15, 8: 5}
            rows["target_histograms"] += [
                {**row, "bin": bin_ * factor, "count": count} for bin_, count in counts.items()
            ]
    return rows


def reading(at: datetime, target: str, used_pct: float, inodes_pct: float = 10) -> dict[str, Any]:
    time = epoch_us(at)
    return {
        "time": time, "date": time // 86_400_000_000, "filesystem": "scratch", "source": "made-up", "target": target,
        "target_kind": "ost", "total_bytes": 10**12, "used_bytes": round(used_pct * 10**10),
        "total_inodes": 10**6, "used_inodes": round(inodes_pct * 10**4),
    }  # fmt: skip


def full() -> Rows:
    """95 % full in the fault, 50 % before and after; one target is a little fuller."""
    rows = [
        reading(minute(end), target, (95 if is_fault(end * 60) else 50) + (2 if target == OSTS[1] else 0))
        for end in range(10, LAST + 1, 10)
        for target in OSTS
    ]
    return {"target_capacity": rows}


def filling() -> Rows:
    """Two per cent of the capacity a day from 40 %, read three times a day; on the 21st day 70 % are purged."""
    rows = []
    for third in range(120):
        used = 40 + 2 * third / 3 if third < 63 else 10 + 0.1 * third / 3
        rows += [reading(START + timedelta(hours=8 * third), target, used) for target in OSTS]
    return {"target_capacity": rows}


def agents() -> Rows:
    """Of two agents the second sends nothing in the fault."""
    rows = []
    for end_s in ticks(60):
        for host in ("oss1", "oss2"):
            if host == "oss1" or not is_fault(end_s):
                time = epoch_us(START) + end_s * 1_000_000
                rows.append({"time": time, "date": time // 86_400_000_000, "source": "spool", "host": host, "run": "1"})
    return {"agent_health": rows, **loads(lambda _, __: 20)}


def worn() -> Rows:
    """A drive that is replaced under its serial number: 85 % worn in the fault."""
    rows = []
    for end in range(10, LAST + 1, 10):
        for serial, wear in (("S1", 12.0), ("S2", 85.0 if is_fault(end * 60) else 3.0)):
            rows.append({
                "time": epoch_us(minute(end)), "source": "nvme", "filesystem": "scratch", "serial": serial,
                "model": "M", "host": "oss1", "wear_pct": wear, "capacity_bytes": 10**12, "host_write_bytes": end,
            })  # fmt: skip
    return {"drives": rows}


def store_of(folder: Path, rows: Rows) -> Path:
    store = Store(folder)
    for table, lines in rows.items():
        if "target" in lines[0]:
            store.append(table, to_arrow(TABLES[table], lines))
        else:
            store.ingest([capture([Row(table, line) for line in lines], table)], "made-up")
    return folder


class Centre:
    """A store, a configuration and a state directory."""

    def __init__(self, folder: Path, rows: Rows, config: str) -> None:
        self.store, self.state, self.config = folder / "store", folder / "state", folder / "iolens.toml"
        store_of(self.store, rows)
        self.configure(config)

    def configure(self, config: str) -> None:
        self.config.write_text(f"{CONFIGURED}{config}")
        self.opened = OpenStore(str(self.store), config=str(self.config), workers=1)

    def check(self, at: datetime | float) -> AlertCheck:
        return check_alerts(self.opened, self.state, at if isinstance(at, datetime) else minute(at))

    def checks(self, minutes: Iterable[float]) -> list[AlertCheck]:
        return [self.check(number) for number in minutes]


def webhook(url: str, name: str = "hook", **more: str) -> str:
    lines = [f'{key} = "{value}"' for key, value in more.items()]
    return "\n".join(["", "[[alerts.receivers]]", f'name = "{name}"', 'kind = "webhook"', f'url = "{url}"', *lines, ""])


def rule(kind: str, name: str = "rule", **more: Any) -> str:
    lines = [f"{key} = {_toml(value)}" for key, value in more.items()]
    return "\n".join(["", "[[alerts.rules]]", f'name = "{name}"', f'kind = "{kind}"', *lines, ""])


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
