"""Calibrations per target class and date: which holds where, and FSU with each target's own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.calibration.applied import applied_calibrations
from iolens.api import OpenStore
from iolens.config import Config, FileSystemConfig, load_config
from iolens.errors import InputError, UsageError
from iolens.models.transaction_time import Calibration, Coefficients, fsu_pct
from iolens.store.store import Store
from iolens.target_names import members_by_pattern
from iolens.units import epoch_us
from iolens.views.render.json_text import to_json
from iolens.views.render.tables import to_terminal
from iolens.views.utilization.tables import tables
from tests.analyses.telemetry import T0_US, TICK_US, made_up
from tests.analyses.utilization.test_utilization import ios_of

MIDDLE = datetime(2020, 9, 14, 0, 10, tzinfo=UTC)
OLD = datetime(2019, 1, 1, tzinfo=UTC)


def row(
    name: str, latency: float, since: datetime | None = None, target_class: str | None = None, **more: object
) -> dict:
    return {
        "time": T0_US, "source": "test", "filesystem": "scratch", "name": name, "target_class": target_class,
        "valid_from": epoch_us(since) if since else None, "write_latency_s": latency, "write_s_per_byte": 1e-9,
        "read_latency_s": latency, "read_s_per_byte": 2e-9, "queue_depth": None, "evidence": None, **more,
    }  # fmt: skip


def config(**classes: tuple[str, ...]) -> Config:
    return Config(filesystems={"scratch": FileSystemConfig(classes=classes)})


def held(rows: list[dict], settings: Config = Config(), name: str | None = None, **window: object):  # noqa: B008 (frozen)
    extent = window.get("extent", (T0_US, T0_US + 400 * TICK_US))
    targets = [f"scratch-OST{number:04x}" for number in range(4)]
    result, notes = applied_calibrations(rows, settings, name, "scratch", extent, targets)
    return [
        (item.calibration.name, item.target_class, item.targets, item.valid_from, item.valid_until) for item in result
    ], notes


def test_the_first_class_that_fits_counts() -> None:
    members = members_by_pattern({"flash": ["*-OST000[01]"], "rest": ["*"]}, ["a-OST0002", "a-OST0001", "a-OST0000"])
    assert members == {"flash": ["a-OST0000", "a-OST0001"], "rest": ["a-OST0002"]}


FAST, SLOW = ["scratch-OST0000", "scratch-OST0001"], ["scratch-OST0002", "scratch-OST0003"]


def estimate(name: str, made: int, since: datetime, target_class: str | None = None, targets: list[str] | None = None):
    text = json.dumps({"scratch": targets}) if targets else None
    return row(name, 1e-3, since, target_class, targets=text, state="estimated", method="frontier") | {"time": made}


def test_classes_that_were_found_hold_for_the_targets_they_were_found_with() -> None:
    rows = [
        estimate("june", 1, OLD, "class-1", [*SLOW, "scratch-OST0099"]),
        estimate("june", 1, OLD, "class-2", FAST),
    ]
    applied, notes = held(rows)
    assert applied[:2] == [("june", "class-1", SLOW, OLD, None), ("june", "class-2", FAST, OLD, None)]
    assert not [note for note in notes if "class" in note]
    configured, _ = held(rows, config(**{"class-1": ("*-OST0000",)}))
    assert configured[0] == ("june", "class-1", ["scratch-OST0000"], OLD, None)


def test_a_later_estimate_takes_the_place_of_all_classes_of_the_one_before() -> None:
    first = [estimate("june", 1, OLD, "class-1", SLOW), estimate("june", 1, OLD, "class-2", FAST)]
    applied, _ = held([*first, estimate("july", 2, MIDDLE)])
    assert applied == [
        ("june", "class-1", SLOW, OLD, MIDDLE),
        ("june", "class-2", FAST, OLD, MIDDLE),
        ("july", None, None, None, None),
    ]
    assert held([*first, estimate("july", 2, OLD)])[0] == [("july", None, None, OLD, None)]


def test_without_classes_there_is_one() -> None:
    assert held([row("ours", 1e-3)]) == ([("ours", None, None, None, None)], ())
    names, notes = held([])
    assert names == [("grace-2012", None, None, None, None)]
    assert "Grace" in notes[0]


def test_each_holds_from_its_date_to_the_next() -> None:
    later, before = datetime(2030, 1, 1, tzinfo=UTC), datetime(2010, 1, 1, tzinfo=UTC)
    rows = [
        row("new", 2e-3, MIDDLE), row("old", 1e-3, OLD), row("future", 9e-3, later), row("forgotten", 5e-3, before),
        row("redone", 3e-3, MIDDLE, time=T0_US + 1),
    ]  # fmt: skip
    assert held(rows)[0] == [
        ("redone", None, None, MIDDLE, later),
        ("old", None, None, OLD, MIDDLE),
    ]
    names, notes = held(rows[2:3])
    assert names == [("future", None, None, None, None)]
    assert "older than every calibration" in notes[0]


def test_a_class_has_its_own_and_the_others_the_general_one() -> None:
    rows = [row("disks", 1e-3), row("flash-1", 1e-5, OLD, "flash"), row("flash-2", 2e-5, MIDDLE, "flash")]
    names, notes = held(rows, config(flash=("*-OST0003",)))
    assert [name[:3] for name in names] == [
        ("flash-2", "flash", ["scratch-OST0003"]), ("flash-1", "flash", ["scratch-OST0003"]), ("disks", None, None),
    ]  # fmt: skip
    assert notes == ()


def test_classes_that_find_no_partner_are_reported() -> None:
    rows = [row("disks", 1e-3), row("tape", 1.0, None, "tape")]
    names, notes = held(rows, config(flash=("*-OST0003",), nvme=("nothing*",)))
    assert [name[0] for name in names] == ["disks"]
    assert "class tape is stored, but [filesystems.scratch.classes] names no such targets" in notes[0]
    assert notes[1:] == ("class flash has no calibration of its own: its targets use the general one",)


def test_a_class_alone_leaves_the_others_to_the_published_one_with_a_note() -> None:
    names, notes = held([row("flash", 1e-5, None, "flash")], config(flash=("*-OST0003",)))
    assert [name[0] for name in names] == ["flash", "grace-2012"]
    assert "Grace" in notes[0]


def test_one_asked_for_by_name_holds_for_all() -> None:
    rows = [row("disks", 1e-3), row("flash", 1e-5, None, "flash")]
    assert [item[0] for item in held(rows, name="flash")[0]] == ["flash"]
    assert [item[0] for item in held(rows, name="grace-2012")[0]] == ["grace-2012"]
    with pytest.raises(UsageError, match="disks, flash, grace-2012"):
        held(rows, name="nobody")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    folder = tmp_path_factory.mktemp("store")
    part = made_up(1, ticks=400, targets=4)
    opened = Store(folder)
    for name in ("target_sizes", "target_io"):
        opened.append(name, part.table(name))
    for item in (row("disks", 1e-3, OLD), row("worn", 3e-3, MIDDLE), row("flash", 1e-5, OLD, "flash")):
        opened.add_calibration(item)
    settings = folder / "iolens.toml"
    settings.write_text('[filesystems.scratch.classes]\nflash = ["scratch-OST000[23]"]\n')
    return iolens.open(str(folder), config=str(settings))


def test_fsu_uses_each_targets_own_at_the_start_of_each_interval(store: OpenStore) -> None:
    """Against Eq. 7 row by row, with the calibration looked up in plain Python."""
    part = made_up(1, ticks=400, targets=4)
    costs = {"disks": 1e-3, "worn": 3e-3, "flash": 1e-5}

    def of(line: dict) -> float:
        is_flash = line["target"][-1] in "23"
        name = "flash" if is_flash else "worn" if line["start"] >= epoch_us(MIDDLE) else "disks"
        both = Calibration(name, Coefficients(costs[name], 1e-9), Coefficients(costs[name], 2e-9))
        return fsu_pct(ios_of(line), line["duration_s"], both)

    result = store.utilization()
    by_tick: dict[int, list] = {}
    for line in part.sizes:
        by_tick.setdefault(line["time"], []).append((of(line), line["duration_s"]))
    ticks = [(np.mean([f for f, _ in same]), np.mean([s for _, s in same])) for same in by_tick.values()]
    assert result.mean_fsu_pct == pytest.approx(
        np.average([f for f, _ in ticks], weights=[s for _, s in ticks]), rel=1e-9
    )
    for item in result.per_target:
        mine = [(of(line), line["duration_s"]) for line in part.sizes if line["target"] == item.target]
        assert item.mean_fsu_pct == pytest.approx(
            np.average([f for f, _ in mine], weights=[s for _, s in mine]), rel=1e-9
        )


def test_an_estimate_of_all_targets_ends_the_classes_of_the_one_before(tmp_path: Path) -> None:
    part = made_up(1, ticks=400, targets=4)
    opened = OpenStore(str(tmp_path))
    opened.store.append("target_sizes", part.table("target_sizes"))
    june, july = estimate("june", 1, OLD, "class-1", SLOW[:1]), estimate("july", 2, MIDDLE)
    opened.store.add_calibration(june)
    opened.store.add_calibration(july | {"write_latency_s": 2e-3, "read_latency_s": 2e-3})
    costs = {
        name: Calibration(name, Coefficients(latency, 1e-9), Coefficients(latency, 2e-9))
        for name, latency in (("june", 1e-3), ("july", 2e-3))
    }
    mine = [
        (fsu_pct(ios_of(line), line["duration_s"], costs["july" if line["start"] >= epoch_us(MIDDLE) else "june"]),
         line["duration_s"])
        for line in part.sizes if line["target"] == SLOW[0]
    ]  # fmt: skip
    (result,) = opened.utilization(targets=SLOW[:1]).per_target
    assert result.mean_fsu_pct == pytest.approx(
        np.average([f for f, _ in mine], weights=[s for _, s in mine]), rel=1e-9
    )


def test_json_and_tables_say_which_holds_where(store: OpenStore) -> None:
    result = store.utilization()
    answer = json.loads(to_json(result))["calibrations"]
    assert [
        (item["calibration"]["name"], item["target_class"], item["valid_from"], item["valid_until"]) for item in answer
    ] == [
        ("flash", "flash", "2019-01-01T00:00:00Z", None),
        ("worn", None, "2020-09-14T00:10:00Z", None),
        ("disks", None, "2019-01-01T00:00:00Z", "2020-09-14T00:10:00Z"),
    ]
    assert answer[0]["targets"] == ["scratch-OST0002", "scratch-OST0003"]
    assert result.calibration.name == "disks"
    text = to_terminal([table for table in tables(result) if table.title == "Calibration"])
    assert "all others" in text
    assert "2020-09-14 00:10:00" in text
    assert "calibrations" not in json.loads(to_json(store.utilization(calibration="grace-2012")))


def test_classes_are_lists_of_patterns(tmp_path: Path) -> None:
    path = tmp_path / "iolens.toml"
    path.write_text('[filesystems.a.classes]\nflash = "nvme*"\n')
    with pytest.raises(InputError, match=r"filesystems\.a\.classes\.flash = 'nvme\*' .* expected a list of texts"):
        load_config(path)
    path.write_text('[filesystems.a.classes]\nflash = ["nvme*", "sd[ab]"]\n')
    assert load_config(path).filesystem("a").classes == {"flash": ("nvme*", "sd[ab]")}
