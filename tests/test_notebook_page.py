"""docs/notebooks.md is executable: its Python blocks run in order, in one namespace, on the quick start's store."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

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
    Store("centre").ingest(get_source("lustre-lctl").captures([CAPTURE], ReadOptions()), "lustre-lctl")
    text = PAGE.read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 10
    namespace: dict[str, object] = {"__name__": "notebook"}
    for block in blocks:
        line = text[: block.start(1)].count("\n")  # so that a failure names the line of the page
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), namespace)

    assert json.loads(Path("day.json").read_text("utf-8"))["filesystem"] == "scratch"
    assert "scratch2" in Path("both.md").read_text("utf-8")
    assert Path("day.png").read_bytes().startswith(b"\x89PNG")
    assert Path("osts.svg").stat().st_size > 0


def test_the_spark_block_is_valid_python() -> None:
    block = next(found for found in re.findall(r"^```text\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S))
    compile(block, str(PAGE), "exec")
