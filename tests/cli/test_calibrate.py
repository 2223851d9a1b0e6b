"""`iolens calibrate` and `iolens config`: what is known, and how to add to it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import iolens


def test_the_paper_s_table_one_ships(tmp_path: Path) -> None:
    done = iolens("calibrate", "show", "--store", tmp_path)
    assert done.code == 0
    assert "grace-2012" in done.out
    assert "551 MiB/s" in done.out


def test_a_known_calibration_is_stored_and_shown(tmp_path: Path) -> None:
    options = ("-f", "scratch", "--write", "1e-3,4.5e-9", "--read", "8e-4,1.2e-9", "--from", "2012-10-01")
    assert iolens("calibrate", "add", "hopper", *options, "--store", tmp_path).code == 0
    shown = iolens("calibrate", "show", "--store", tmp_path).out
    assert "hopper  stored for scratch from 2012-10-01T00:00:00Z" in shown


def test_coefficients_must_be_two_positive_numbers(tmp_path: Path) -> None:
    for wrong in ("1e-3", "a,b", "0,1e-9", "1e-3,-1e-9"):
        done = iolens("calibrate", "add", "x", "--write", wrong, "--read", "1,1", "--store", tmp_path)
        assert (done.code, "--write" in done.err) == (2, True)


def test_the_configuration_in_force_is_shown(tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text('store = "s"\n[filesystems.scratch]\npeak = "35GB/s"\n')
    shown = iolens("config", "show", cwd=tmp_path).out
    assert "iolens.toml" in shown
    assert "peak_bytes_per_s = 35000000000.0" in shown
    assert "/elsewhere" in iolens("config", "show", cwd=tmp_path, IOLENS_STORE="/elsewhere").out
