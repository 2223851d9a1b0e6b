"""`iolens ingest`: what it says, what it exits with, and that nothing good is lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from iolens.store.store import Store
from tests.cli.captures import T0, snapshot
from tests.cli.command import iolens

FIRST, SECOND = {("write", 4096): 1000}, {("write", 4096): 1100, ("read", 1 << 20): 50}
EXPECTED = 100 * (100 * (1.04e-3 + 1.73e-9 * 4096) + 50 * (8.02e-4 + 1.23e-9 * 1048576))


def fsu(store: Path, *more: str) -> dict:
    done = iolens("utilization", "--store", store, "--format", "json", "--calibration", "grace-2012", *more)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_two_captures_with_known_counts_give_equation_seven(tmp_path: Path) -> None:
    """SPEC U's check value: 20.93."""
    (tmp_path / "a.txt").write_text(snapshot(0, FIRST))
    (tmp_path / "b.txt").write_text(snapshot(1, SECOND))
    done = iolens("ingest", "lustre-lctl", tmp_path / "b.txt", tmp_path / "a.txt", "--store", tmp_path / "store")
    assert done.code == 0, done.err
    result = fsu(tmp_path / "store")
    assert result["mean_fsu_pct"] == pytest.approx(EXPECTED, rel=1e-9)
    assert result["filesystem"] == "scratch"


def test_several_snapshots_in_one_file_and_in_separate_calls_give_the_same(tmp_path: Path) -> None:
    texts = [snapshot(5 * n, {("write", 4096): 100 * n, ("read", 1 << 20): 10 * n}) for n in range(6)]
    (tmp_path / "all.txt").write_text("".join(texts))
    iolens("ingest", "lustre-lctl", tmp_path / "all.txt", "--store", tmp_path / "one")
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.txt.gz"
        path.write_bytes(gzip.compress(text.encode()))
        assert iolens("ingest", "lustre-lctl", path, "--store", tmp_path / "many").code == 0
    item, many = fsu(tmp_path / "one"), fsu(tmp_path / "many")
    assert item["samples"] == 5
    assert item == many


def test_dumps_of_different_years_are_two_baselines_and_answered_each(tmp_path: Path) -> None:
    """Not one interval of a year with an FSU of 0.000005 %, and not nothing."""
    (tmp_path / "a.txt").write_text(snapshot(0, FIRST))
    (tmp_path / "b.txt").write_text(snapshot(365 * 86_400, SECOND))
    done = iolens("ingest", tmp_path / "a.txt", tmp_path / "b.txt", "--store", tmp_path / "store")
    assert done.code == 0, done.err
    assert "2 samples too long after the one before: new baselines" in done.out
    assert "52,428,800 bytes read, 409,600 bytes written from 2023-11-14T22:13:20Z to 2024-11-13T22:13:20Z" in done.err
    result = fsu(tmp_path / "store")
    assert (result["samples"], result["mean_fsu_pct"]) == (0, None)
    assert (result["since_start"]["first_start"], result["since_start"]["ios"]) == ("2023-11-14T22:11:40Z", 1150)
    shown = iolens("utilization", "--store", tmp_path / "store")
    assert "since counters began (2023-11-14 22:11:40" in " ".join(shown.out.split())


def test_the_same_file_twice_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(snapshot(0, FIRST) + snapshot(5, SECOND))
    iolens("ingest", path, "--store", tmp_path / "store")
    done = iolens("ingest", path, "--store", tmp_path / "store")
    assert (done.code, "already present" in done.out) == (0, True)
    assert "taken for lustre-lctl" in done.err
    assert fsu(tmp_path / "store")["target_samples"] == 1


def test_what_many_captures_leave_out_is_said_once(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(
            snapshot(5 * number, FIRST) + "obdfilter.scratch-OST0000.tot_granted=7\n"
        )
    done = iolens("ingest", *(tmp_path / f"{number}.txt" for number in range(3)), "--store", tmp_path / "store")
    assert done.code == 0
    assert done.err.count("left out, not kept by iolens: obdfilter.*.tot_granted") == 1
    assert "1 left out by rule:" in done.err


def test_a_tree_is_a_snapshot(tmp_path: Path) -> None:
    for number, ios in enumerate((FIRST, SECOND)):
        text = snapshot(number, ios)
        stats, _, brw = text.partition("osd-ldiskfs.scratch-OST0000.brw_stats=\n")
        root = tmp_path / f"root{number}"
        for path, content in (
            ("proc/fs/lustre/obdfilter/scratch-OST0000/stats", stats.partition("\n")[2]),
            ("sys/kernel/debug/lustre/osd-ldiskfs/scratch-OST0000/brw_stats", brw),
        ):
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text(content)
    done = iolens("ingest", "lustre-proc", tmp_path / "root0", tmp_path / "root1", "--store", tmp_path / "store")
    assert done.code == 0, done.err
    assert fsu(tmp_path / "store")["mean_fsu_pct"] == pytest.approx(EXPECTED, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.txt", b""),
        ("binary.txt", bytes(range(256)) * 20),
        ("nonsense.txt", b"hello\nworld\n"),
        ("cut.txt.gz", gzip.compress(snapshot(0, FIRST).encode(), mtime=0)[:-40]),
        ("latin.txt", "caf\xe9=1\n".encode("latin-1")),
    ],
)
def test_a_damaged_file_alone_is_an_error_with_its_place(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    done = iolens("ingest", "lustre-lctl", tmp_path / name, "--store", tmp_path / "store")
    assert done.code in (1, 3), done.out
    assert name in done.err
    assert "Traceback" not in done.err


def test_a_damaged_file_among_good_ones_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(snapshot(5 * number, {("write", 4096): 100 * number}))
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe nonsense")
    done = iolens(
        "ingest", "lustre-lctl", *sorted(tmp_path.glob("*.txt")), tmp_path / "gone.txt", "--store", tmp_path / "s"
    )
    assert done.code == 3
    assert "bad.txt" in done.err
    assert "gone.txt: no such file" in done.err
    assert fsu(tmp_path / "s")["samples"] == 2


def test_a_half_written_last_snapshot_loses_only_itself(tmp_path: Path) -> None:
    texts = [snapshot(5 * n, {("write", 4096): 100 * n, ("read", 1 << 20): n}) for n in range(4)]
    whole = "".join(texts)
    path = tmp_path / "growing.txt"
    path.write_text(whole[: len(whole) - len(texts[-1]) // 2])
    done = iolens("ingest", "lustre-lctl", path, "--store", tmp_path / "store")
    assert done.code == 3
    assert "growing.txt:" in done.err
    path.write_text(whole)
    assert iolens("ingest", "lustre-lctl", path, "--store", tmp_path / "store").code == 0
    counts = {(line["direction"], line["size_bytes"]): line["count"] for line in fsu(tmp_path / "store")["io_sizes"]}
    assert (counts["write", 4096], counts["read", 1 << 20]) == (300, 3)


def test_one_bad_target_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = snapshot(5, {("write", 4096): 9}, target="scratch-OST0001").replace("4K:", "4Q:")
    first = snapshot(0, {}) + snapshot(0, {}, target="scratch-OST0001")
    (tmp_path / "a.txt").write_text(first + snapshot(5, {("write", 4096): 7}) + bad)
    done = iolens("ingest", "lustre-lctl", tmp_path / "a.txt", "--store", tmp_path / "store")
    assert done.code == 3
    assert "a.txt:" in done.err
    result = fsu(tmp_path / "store")
    assert [line["target"] for line in result["per_target"] if line["mean_fsu_pct"] is not None] == ["scratch-OST0000"]
    assert "scratch-OST0001" in result["coverage"]["missing_targets"]


def test_a_late_file_is_refused_until_rebuild(tmp_path: Path) -> None:
    texts = {n: snapshot(5 * n, {("write", 4096): 100 * n}) for n in range(3)}
    for number, text in texts.items():
        (tmp_path / f"{number}.txt").write_text(text)
    store = ("--store", tmp_path / "store")
    iolens("ingest", "lustre-lctl", tmp_path / "0.txt", tmp_path / "2.txt", *store)
    late = iolens("ingest", "lustre-lctl", tmp_path / "1.txt", *store)
    assert (late.code, "--rebuild" in late.out) == (3, True)
    again = iolens("ingest", "lustre-lctl", *sorted(tmp_path.glob("*.txt")), "--rebuild", *store)
    assert again.code == 0, again.err
    result = fsu(tmp_path / "store")
    assert result["samples"] == 2
    assert sum(line["count"] for line in result["io_sizes"]) == 200


def test_usage_errors_exit_two(tmp_path: Path) -> None:
    assert iolens("ingest").code == 2
    assert iolens("ingest", "lustre-lctl", "--store", tmp_path).code == 2
    assert iolens("ingest", tmp_path / "x", "--interval", "often").code == 2


def test_a_path_that_has_a_source_s_name_is_a_path_when_written_as_one(tmp_path: Path) -> None:
    (tmp_path / "lustre-lctl").write_text(snapshot(0, FIRST))
    assert iolens("ingest", "./lustre-lctl", "--store", "s", cwd=tmp_path).code == 0


def test_the_reset_capture_series_counts_what_moved(shared_data: Path, tmp_path: Path) -> None:
    """Twelve snapshots with a reset at the eighth: differences before, the counter itself at the reset, again after."""
    files = sorted((shared_data / "lustre-server-proc" / "SYNTHETIC-counter-reset").glob("stats.*"))
    done = iolens(
        "ingest", "lustre-lctl", *files, "--filesystem", "s", "--target", "s-OST0000", "--store", tmp_path / "store"
    )
    assert done.code == 0, done.err
    result = fsu(tmp_path / "store")
    reads = [1130496, 16990208, 22458368, 87994368, 93093888, 1050443776, 1055404032]
    after = [258048, 72937472, 102035456, 102281216, 2119741440]
    expected = reads[-1] - reads[0] + after[-1]
    assert sum(day["read_bytes"] for day in result["daily"]) == expected
    assert T0 > 0


def test_a_file_that_cannot_tell_its_target_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text(snapshot(0, FIRST).split("brw_stats=\n")[1])
    (tmp_path / "good.txt").write_text(snapshot(0, FIRST) + snapshot(5, SECOND))
    done = iolens("ingest", "lustre-lctl", *sorted(tmp_path.glob("*.txt")), "--store", tmp_path / "s")
    assert done.code == 3
    assert "bare.txt" in done.err
    assert "--filesystem and --target" in done.err
    assert fsu(tmp_path / "s")["samples"] == 1
    again = iolens("ingest", "lustre-lctl", tmp_path / "bare.txt", "--store", tmp_path / "s")
    assert again.code == 1
    named = ("--filesystem", "scratch", "--target", "scratch-OST0007")
    assert iolens("ingest", "lustre-lctl", tmp_path / "bare.txt", *named, "--store", tmp_path / "s").code == 0


def test_a_directory_stands_for_its_files_and_each_is_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "captures" / "deep"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.txt").write_text(snapshot(5 * number, {("write", 4096): 100 * number}))
    (folder / ".hidden").write_text("not looked at")
    done = iolens("ingest", tmp_path / "captures", "--store", tmp_path / "store")
    assert done.code == 0, done.err
    assert f"{folder / '0.txt'}: taken for lustre-lctl" in done.err
    assert "3 captures" in done.out


def test_an_unknown_file_in_a_directory_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "good.txt").write_text(snapshot(0, FIRST))
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    done = iolens("ingest", folder, "--store", tmp_path / "store")
    assert done.code == 3
    assert "photo.png: format not recognised" in done.err
    assert "2 captures" in done.out
    nothing = tmp_path / "nothing"
    (nothing / "deeper").mkdir(parents=True)
    assert iolens("ingest", nothing, "--store", tmp_path / "store").code == 1


def test_many_files_are_read_by_several_processes_in_time_order(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:03}.txt").write_text(snapshot(5 * number, {("write", 4096): 100 * number}))
    (folder / "030.txt").write_text("param=\n" * 3)
    done = iolens("ingest", "lustre-lctl", folder, "--store", tmp_path / "two", "--workers", "2")
    assert done.code == 3, done.err
    assert "030.txt" in done.err
    item = iolens("ingest", "lustre-lctl", folder, "--store", tmp_path / "one", "--workers", "1")
    assert item.code == 3
    assert fsu(tmp_path / "two") == fsu(tmp_path / "one")


def test_an_address_no_source_reads_is_refused_without_its_secrets(tmp_path: Path) -> None:
    done = iolens("ingest", "gopher://me:secret@host/x", "--store", tmp_path / "store")
    assert done.code == 1
    assert "no source reads this kind of address" in done.err
    assert "secret" not in done.err + done.out


def test_a_section_for_a_source_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text("[sources.lustre-lcctl]\nkey = 1\n")
    (tmp_path / "a.txt").write_text(snapshot(0, FIRST))
    done = iolens("ingest", tmp_path / "a.txt", "--store", tmp_path / "s", "--config", tmp_path / "iolens.toml")
    assert done.code == 1
    assert "sources.lustre-lcctl" in done.err


def stats(second: float, moved: int, start: int | None = None) -> str:
    """`obdfilter.*.stats` of one OST, as versions without a start of counting print it."""
    began = "" if start is None else f"start_time            {start}.000000000 secs.nsecs\n"
    return (
        f"obdfilter.scratch-OST0000.stats=\nsnapshot_time         {T0 + second:.6f} secs.usecs\n{began}"
        f"read_bytes            {moved // 4096} samples [bytes] 4096 1048576 {moved}\n"
        f"write_bytes           {moved // 4096} samples [bytes] 4096 1048576 {moved}\n"
    )


def table(store: Path, name: str, *columns: str) -> list[tuple]:
    handle = Store(store).tables.load(name)
    assert handle is not None
    rows = handle.to_pyarrow_table().sort_by("time").to_pylist()
    return [tuple(row[column] for column in columns) for row in rows]


def test_a_clock_set_back_inside_a_capture_is_said_and_invents_nothing(tmp_path: Path) -> None:
    """It was one row of 438 TB in 2 s, after a reset that never was."""
    large, seconds = 438 * 10**12, (0, 5, 10, 15, 13, 18)
    (tmp_path / "a.txt").write_text("".join(stats(s, large + 4096_000 * n) for n, s in enumerate(seconds)))
    done = iolens("ingest", "lustre-lctl", tmp_path / "a.txt", "--store", tmp_path / "store")
    assert done.code == 0, done.err
    assert "1 sample after the clock was set back: what moved is counted in the next later interval" in done.out
    assert "reset" not in done.out
    rows = table(tmp_path / "store", "target_io", "read_bytes", "duration_s", "after_reset")
    assert rows == [(4096_000, 5.0, False)] * 3 + [(8192_000, 10.0, False)]
    ((set_back,),) = table(tmp_path / "store", "batches", "set_back")
    assert set_back == 1


def test_more_than_a_target_can_move_is_refused_with_target_time_value_and_ceiling(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(stats(0, 0) + stats(5, 9 * 10**18) + stats(10, 8192))
    done = iolens("ingest", "lustre-lctl", tmp_path / "a.txt", "--store", tmp_path / "store")
    assert done.code == 3
    assert (
        "target_io.read_bytes of scratch-OST0000 moved 9000000000000000000 in 5 s to 2023-11-14T22:13:25Z" in done.err
    )
    assert "more than 1,000,000,000,000 bytes/s allow; stored as unknown (raise target_ceiling of" in done.err
    assert table(tmp_path / "store", "target_io", "read_bytes") == [(None,), (8192,)]


def test_the_ceiling_is_configured_per_file_system(tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text('[filesystems.scratch]\ntarget_ceiling = "1MB/s"\ntarget_ops_ceiling = 1e6\n')
    (tmp_path / "a.txt").write_text(stats(0, 0) + stats(5, 4096_000) + stats(10, 4096_000 + 8192_000))
    common = ("--store", tmp_path / "store", "--config", tmp_path / "iolens.toml")
    done = iolens("ingest", "lustre-lctl", tmp_path / "a.txt", *common)
    assert (done.code, "more than 1,000,000 bytes/s allow" in done.err) == (3, True)
    assert table(tmp_path / "store", "target_io", "read_bytes") == [(4096_000,), (None,)]


def test_what_a_rebuild_found_no_place_for_is_said(tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store")
    texts = {"known": stats(0, 0) + stats(20, 4096_000), "fits": stats(5, 8192), "not": stats(10, 10**9)}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    assert iolens("ingest", "lustre-lctl", tmp_path / "known.txt", *store).code == 0
    fits = iolens("ingest", "lustre-lctl", tmp_path / "fits.txt", "--rebuild", *store)
    assert (fits.code, "1 late sample fitted between the stored ones" in fits.out) == (0, True)
    contradicts = iolens("ingest", "lustre-lctl", tmp_path / "not.txt", "--rebuild", *store)
    assert contradicts.code == 3
    assert "1 late sample or row contradicts what is stored, refused: what is stored stays" in contradicts.out
    assert table(tmp_path / "store", "target_io", "read_bytes") == [(8192,), (4096_000 - 8192,)]
