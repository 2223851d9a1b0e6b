"""Loading from Python: the rows and the tally are those of the verb, and what is refused is said."""

from __future__ import annotations

from pathlib import Path

import iolens
from tests.cli.command import iolens as verb

CAPTURE = Path(__file__).parent.parent.parent / "docs" / "capture.txt.gz"


def test_files_are_loaded_as_the_verb_loads_them(tmp_path: Path) -> None:
    done = verb("ingest", CAPTURE, "--store", tmp_path / "verb")
    assert done.code == 0, done.err
    with iolens.open(str(tmp_path / "python")) as store:
        tally = store.ingest(CAPTURE)
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.rows.items()))
        assert f": {tally.captures} capture, {tally.samples:,} samples: {counts}\n" in done.out
        assert store.ingest(CAPTURE, source="lustre-lctl").already_present == tally.captures
        answer = store.utilization("scratch", calibration="grace-2012")
    with iolens.open(str(tmp_path / "verb")) as store:
        assert store.utilization("scratch", calibration="grace-2012").mean_fsu_pct == answer.mean_fsu_pct


def test_what_is_not_understood_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear all\n")
    with iolens.open(str(tmp_path / "store")) as store:
        tally = store.ingest(tmp_path / "letter.txt", tmp_path / "nowhere")
    assert tally.refused == 2
    assert any("nowhere: no such file or directory" in str(problem) for problem in tally.problems)
