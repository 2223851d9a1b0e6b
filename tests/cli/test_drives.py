"""`iolens drives`: formats, figures, windows and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from iolens.records import Capture, Row
from iolens.store.store import Store
from tests.analyses.drive_rows import drive
from tests.cli.command import iolens


def rows() -> Iterator[Row]:
    for number in range(11):
        for day in range(0, 40, 10):
            written = 50_000 + 100 * number * day
            values = drive(f"d{number:02}", day, written, 2 * written + number, host=f"node{number % 2}", wear_pct=9.0)
            yield Row("drives", {name: value for name, value in values.items() if name != "source"})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    Store(folder).ingest([Capture("drives", "made-up/drives", partial(rows))], "isdct")
    return folder


def asked(store: Path, *arguments: object) -> dict[str, Any]:
    done = iolens("drives", "--store", store, *arguments, "--format", "json")
    assert done.code == 0, done.err
    by_name: dict[str, Any] = json.loads(done.out)
    return by_name


def test_json_has_the_keys_of_the_interface(store: Path) -> None:
    result = asked(store, "--rated-dwpd", 3, "--warranty-years", 3, "--group-by", "host", "--waf-limit", 2.00005)
    assert result["drives"] == 11
    assert result["fleet_waf"] == pytest.approx(2.0, rel=1e-3)
    for name in ("waf", "dwpd", "wear_pct"):
        assert list(result[name])[:4] == ["min", "median", "p95", "max"]
    assert result["dwpd"]["max"] == pytest.approx(80 / 1030)
    assert result["window"]["dwpd"]["max"] == pytest.approx(1.0)
    assert [item["group"] for item in result["groups"]] == ["node0", "node1"]
    assert (result["rated_dwpd"], result["warranty_years"]) == (3, 3)
    assert result["years_left"]["by_rating"]["drives"] == 11
    assert result["outliers"]["limit_origin"] == "given"
    assert result["coverage"]["sources"] == ["isdct"]
    assert result["per_drive"][10]["window"]["days"] == 30


def test_a_window(store: Path) -> None:
    result = asked(store, "--from", "2020-09-20", "--to", "2020-10-05")
    assert result["samples"] == 22
    assert result["window"]["dwpd"]["max"] == pytest.approx(1.0)
    assert result["last_reading"] == "2020-10-04T00:00:00Z"
    assert asked(store, "--to", "2020-09-15")["window"] is None
    done = iolens("drives", "--store", store, "--from", "2021-01-01")
    assert (done.code, done.out) == (2, "")
    assert "nothing is stored of this window; stored is 2020-09-14T00:00:00Z to 2020-10-14T00:00:00Z" in done.err


def test_tables_and_figures(store: Path, tmp_path: Path) -> None:
    done = iolens("drives", "--store", store, "--figure", tmp_path / "waf.svg", "--figure", f"wear={tmp_path}/w.png")
    assert done.code == 0, done.err
    assert "Drives that wear fastest" in done.out
    assert (tmp_path / "waf.svg").stat().st_size > 1000
    assert (tmp_path / "w.png").stat().st_size > 1000
    assert iolens("drives", "--store", store, "--figure", "list").out.split() == ["waf", "dwpd", "wear"]
    assert iolens("drives", "--store", store, "--format", "csv").out.startswith("filesystem,window_start,")


def test_errors_are_one_message(store: Path, tmp_path: Path) -> None:
    nothing = iolens("drives", "--store", tmp_path / "none")
    assert (nothing.code, nothing.out) == (1, "")
    assert "holds no data yet" in nothing.err
    refused = iolens("drives", "--store", store, "--target", "OST0000")
    assert (refused.code, refused.err) == (2, "iolens: drives are no targets: leave --target out\n")
    assert iolens("drives", "--store", store, "--rated-dwpd", "0").code == 2
    assert iolens("drives", "--store", store, "--group-by", "rack").code == 2
