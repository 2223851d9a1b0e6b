"""docs/notebooks.md is executable: its Python blocks run in order, in one namespace, on the quick start's store."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

import iolens
from iolens.sources import ReadOptions, get_source
from iolens.store.store import Store

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "notebooks.md"
CAPTURE = DOCS / "capture.txt.gz"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    _fill(Path("centre"))
    text = PAGE.read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 10
    namespace: dict[str, object] = {"__name__": "api"}
    for block in blocks:
        line = text[: block.start(1)].count("\n")  # so that a failure names the line of the page
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), namespace)

    assert json.loads(Path("day.json").read_text("utf-8"))["filesystem"] == "scratch"
    assert "scratch2" in Path("both.md").read_text("utf-8")
    assert Path("day.png").read_bytes().startswith(b"\x89PNG")
    assert Path("osts.svg").stat().st_size > 0


def test_the_spark_block_answers_on_a_frame_of_that_path(tmp_path: Path) -> None:
    """No cluster here: a stand-in notes what it is asked for and reads the quick start's table instead."""
    _fill(tmp_path / "centre")
    with iolens.open(str(tmp_path / "centre")) as store:
        sizes = store.frame("target_sizes", "scratch").collect("pyarrow").to_native()
    session, builder = MagicMock(), MagicMock()
    builder.remote.return_value.config.return_value.getOrCreate.return_value = session
    session.read.parquet.return_value = sizes
    (block,) = re.findall(r"^```text\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    *before, last = block.strip().splitlines()
    namespace: dict[str, object] = {"iolens": iolens, "SparkSession": SimpleNamespace(builder=builder)}
    exec("\n".join(before), namespace)
    result = eval(last, namespace)
    assert round(result.mean_fsu_pct, 1) == 59.3  # as the page says of every other library
    assert session.read.parquet.call_args.args[0].endswith("/target_sizes")
    assert builder.remote.return_value.config.call_args.args == ("spark.sql.session.timeZone", "UTC")


def _fill(store: Path) -> None:
    Store(str(store)).ingest(get_source("lustre-lctl").captures([CAPTURE], ReadOptions()), "lustre-lctl")
