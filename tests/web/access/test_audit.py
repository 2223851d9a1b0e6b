"""The audit log: one line stays one line, files are private and rotate, a flood of refusals does not wash it away."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from iolens.web.access.audit import KEPT, AuditLog


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def test_whatever_a_name_holds_a_line_stays_one_line(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state")
    names = ['a\nb\r"}{\x1b[2J', "\u2028\u2029\x85", "\ud800", "é" * 10_000, "iolens_" + "S" * 43]
    for name in names:
        log.note("change", principal=name, status=200)
    text = (tmp_path / "state" / "audit.log").read_bytes()
    assert text.count(b"\n") == len(names)
    assert text.isascii()
    assert b"\x1b" not in text
    assert b"S" * 43 not in text
    written = lines(tmp_path / "state" / "audit.log")
    assert written[0]["principal"] == 'a\\nb\\r"}{\\x1b[2J'
    assert all(len(str(line["principal"])) <= 256 for line in written)


def test_files_are_private_and_rotate(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", largest_bytes=1000)
    for number in range(200):
        log.note("change", principal="ada", number=number)
    names = {path.name for path in (tmp_path / "state").iterdir()}
    assert names == {"audit.log", "audit.lock", *(f"audit.log.{number}" for number in range(1, KEPT + 1))}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()} == {0o600}
    assert all(path.stat().st_size <= 1000 for path in (tmp_path / "state").iterdir())
    newest = [*lines(tmp_path / "state" / "audit.log.1"), *lines(tmp_path / "state" / "audit.log")]
    assert [line["number"] for line in newest] == list(range(200 - len(newest), 200))


def test_a_flood_of_refusals_is_counted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state")
    log.note("log-in", principal="ada")
    for number in range(1000):
        log.note_refusal(f"10.0.{number % 50}.1", path="/", status=401)
    log.note("log-in", principal="eve")
    written = lines(tmp_path / "state" / "audit.log")
    refused = [line for line in written if line["event"] == "refused"]
    assert 200 <= len(refused) <= 202  # the pace of all addresses together
    assert written[-1]["refusals_left_out"] == 1000 - len(refused)


def test_a_log_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AuditLog(tmp_path / "state")
    log.note("log-in", principal="ada")
    (tmp_path / "state" / "audit.log").unlink()
    (tmp_path / "state" / "audit.log").mkdir()
    for _ in range(5):
        log.note("log-in", principal="ada")
    assert capsys.readouterr().err.count("audit.log: not written") == 1
