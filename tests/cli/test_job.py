"""`iolens job begin | end | run | report`: from the nodes of a job to the report at the end of its output."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from iolens.agent.jobs.sampling import file_name
from tests.cli.command import Finished, iolens, iolens_process
from tests.sources.lustre.client_trees import ENZO_READS, ENZO_WRITES, T0, enzo_node, tree_2_5, tree_2_15

NODES = "r1i0n[0-3]"


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "IOLENS_JOBS": str(folder),
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NAME": "enzo",
        "SLURM_JOB_USER": "alice",
        "SLURM_CLUSTER_NAME": "pleiades",
        "SLURM_JOB_NODELIST": NODES,
        "SLURM_NTASKS": "64",
        "SLURMD_NODENAME": "",
        **more,
    }


def enzo_job(tmp_path: Path, ends: tuple[int, ...] = (0, 1, 2, 3)) -> Path:
    """The job of SPEC N's Tables I and II on 4 nodes and 60 OSTs; `ends`: nodes that are sampled at its end."""
    folder = tmp_path / "jobs"
    for node in range(4):
        root = enzo_node(tmp_path / f"{node}-begin", node, ended=False)
        assert iolens("job", "begin", "--root", root, **environment(folder)) == Finished(0, "", "")
    for node in ends:
        root = enzo_node(tmp_path / f"{node}-end", node, ended=True)
        assert iolens("job", "end", "--no-report", "--root", root, **environment(folder)) == Finished(0, "", "")
    return folder


def reported(*arguments: object, code: int = 0, **variables: str) -> dict[str, Any]:
    done = iolens("job", "report", *arguments, "--format", "json", **variables)
    assert done.code == code, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


def assert_enzo(report: dict[str, Any]) -> None:
    (part,) = report["filesystems"]
    assert part["filesystem"] == "nbp1"
    assert [size["size_bytes"] for size in part["rpc_sizes"]] == [4096 << power for power in range(9)]
    assert [size["reads"] for size in part["rpc_sizes"]] == list(ENZO_READS)
    assert [size["writes"] for size in part["rpc_sizes"]] == list(ENZO_WRITES)
    assert part["metadata"] == {"open": 5303, "close": 5769, "stat": 12460, "statfs": 0}
    assert (part["read_bytes"], part["write_bytes"]) == (54 * 10**9, 56 * 10**9)
    assert part["rpc_bytes_max"] == sum(
        (r + w) * (4096 << n) for n, (r, w) in enumerate(zip(ENZO_READS, ENZO_WRITES, strict=True))
    )
    small = [100 * sum(counts[:5]) / sum(counts) for counts in (ENZO_READS, ENZO_WRITES)]
    assert part["small_rpc_pct"] == {"read": pytest.approx(small[0]), "write": pytest.approx(small[1])}


def test_the_tables_of_the_paper_come_out_of_the_job_folder(tmp_path: Path) -> None:
    report = reported(4711, **environment(enzo_job(tmp_path)))
    assert_enzo(report)
    about = {name: report[name] for name in ("jobid", "cluster", "user", "name", "nodes", "missing_nodes")}
    assert about == {
        "jobid": "4711", "cluster": "pleiades", "user": "alice", "name": "enzo", "nodes": 4, "missing_nodes": [],
    }  # fmt: skip


def test_the_same_tables_come_out_of_the_store(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path)
    for _ in range(2):  # the second time adds nothing
        assert iolens("ingest", folder, "--store", tmp_path / "store").code == 0
    shutil.rmtree(folder)
    report = reported(4711, "--store", tmp_path / "store", **environment(folder))
    assert_enzo(report)
    assert report["nodes"] == 4


def spooled(tmp_path: Path, nodes: range, ended: bool) -> None:
    """One sample of each node by its agent, in a spool of its own."""
    for node in nodes:
        root = enzo_node(tmp_path / f"{node}-{ended}", node, ended)
        spool = ("--interval", "0.1s", "--spool", tmp_path / f"spool-{node}")
        done = iolens("collect", "--once", "--no-ship", "--root", root, *spool)
        assert done.code == 0, done.err


def test_the_same_tables_come_out_of_the_spools_of_agents(tmp_path: Path) -> None:
    start = datetime.now(UTC)
    spooled(tmp_path, range(4), ended=False)
    time.sleep(0.2)  # to the next tick of the clock
    spooled(tmp_path, range(4), ended=True)
    for node in range(4):
        assert iolens("ingest", "spool", tmp_path / f"spool-{node}", "--store", tmp_path / "store").code == 0
    window = ("--from", start - timedelta(minutes=1), "--to", start + timedelta(minutes=5))
    report = reported("--nodes", NODES, *window, "--store", tmp_path / "store")
    assert_enzo(report)
    assert (report["nodes"], report["missing_nodes"]) == (4, [])


def test_a_job_of_the_scheduler_is_reported_from_what_its_nodes_counted(tmp_path: Path) -> None:
    """No sample of its own: `sacct` says when and where it ran, the nodes were sampled on the clock."""
    for step, ended in enumerate((False, True)):
        roots = [enzo_node(tmp_path / f"{node}-{step}", node, ended) for node in range(4)]
        assert iolens("ingest", "lustre-client-proc", *roots, "--store", tmp_path / "store").code == 0
    times = [datetime.fromtimestamp(T0 + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") for seconds in (-5, 605)]
    (tmp_path / "sacct.txt").write_text(
        "JobIDRaw|Cluster|User|JobName|State|Submit|Start|End|NNodes|NodeList\n"
        f"4711|pleiades|alice|enzo|COMPLETED|{times[0]}|{times[0]}|{times[1]}|5|r1i0n[0-4]\n"
    )
    loaded = iolens("ingest", "slurm", tmp_path / "sacct.txt", "--timezone", "UTC", "--store", tmp_path / "store")
    assert loaded.code == 0, loaded.err
    report = reported(4711, "--store", tmp_path / "store", code=3, IOLENS_JOBS=str(tmp_path / "none"))
    assert_enzo(report)
    assert report["missing_nodes"] == [{"node": "r1i0n4", "reason": "no sample of it in the store"}]
    assert (report["user"], report["name"], report["duration_s"]) == ("alice", "enzo", 610)
    assert report["notes"] == [
        "from samples of the nodes every 600 s or less: what other programs did there in that time is in the sums too"
    ]


def test_the_text_has_80_columns_and_the_tables_numbers(tmp_path: Path) -> None:
    text = iolens("job", "report", "4711", **environment(enzo_job(tmp_path))).out
    assert max(map(len, text.splitlines())) <= 80
    lines = [line.split() for line in text.splitlines()]
    assert ["1,024", "KiB", "26,572", "52,606"] in lines
    assert ["GB", "54.00", "56.00"] in lines
    assert "  open 5,303, close 5,769, stat 12,460, statfs 0" in text.splitlines()


def test_the_last_end_prints_the_report(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path, ends=(0, 1, 2))
    root = enzo_node(tmp_path / "3-end", 3, ended=True)
    done = iolens("job", "end", "--root", root, **environment(folder))
    assert (done.code, done.out) == (0, iolens("job", "report", "4711", **environment(folder)).out)


def test_a_node_that_does_not_answer_is_named_and_the_others_count(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path, ends=(0, 1, 3))
    more = environment(folder, SLURM_JOB_NODELIST="r1i0n[0-4]")
    root = enzo_node(tmp_path / "again", 0, ended=True)
    done = iolens("job", "end", "--root", root, "--format", "json", **more)
    assert done.code == 2  # end has no --format
    iolens("job", "end", "--no-report", "--root", root, **more)
    report = reported(4711, code=3, **more)
    assert report["missing_nodes"] == [
        {"node": "r1i0n2", "reason": "no sample at the end: it died, or the job still runs there"},
        {"node": "r1i0n4", "reason": "no sample: it did not answer"},
    ]
    assert report["filesystems"][0]["nodes"] == 3
    text = iolens("job", "report", "4711", **more).out
    assert "NOT COMPLETE: r1i0n4: no sample: it did not answer" in text.splitlines()


def test_a_reboot_in_mid_job_is_said_and_what_can_be_known_counts(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    variables = environment(folder, SLURM_JOB_NODELIST="n215")
    before = tree_2_15(tmp_path / "before", T0, opens=1000, start=T0 - 500)
    after = tree_2_15(tmp_path / "after", T0 + 600, opens=30, start=T0 + 300)
    for root, boot in ((before, "aaaa"), (after, "bbbb")):
        boot_id = root / "proc/sys/kernel/random/boot_id"
        boot_id.parent.mkdir(parents=True)
        boot_id.write_text(f"{boot}\n")
    iolens("job", "begin", "--root", before, **variables)
    iolens("job", "end", "--no-report", "--root", after, **variables)
    report = reported(4711, code=3, **variables)
    assert report["missing_nodes"] == [
        {"node": "n215", "reason": "rebooted during the job: what it did before is not in the sums"}
    ]
    assert report["filesystems"][0]["metadata"]["open"] == 30


def test_two_jobs_on_one_node_know_of_each_other(tmp_path: Path) -> None:
    first, second = (environment(tmp_path / "jobs", SLURM_JOB_ID=name, SLURM_JOB_NODELIST="n25") for name in ("1", "2"))
    root = tree_2_5(tmp_path / "node")
    for point, variables in (("begin", first), ("begin", second), ("end", first), ("end", second)):
        iolens("job", point, "--root", root, **variables)
    for own, other in ((first, "2"), (second, "1")):
        (note,) = reported(own["SLURM_JOB_ID"], **own)["notes"]
        assert note == f"n25 shared with job {other}: what those did there at the same time is in the sums too"


def test_a_third_job_after_the_first_two_ended_is_alone(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path / "node")
    for name in ("1", "2", "3"):
        variables = environment(tmp_path / "jobs", SLURM_JOB_ID=name, SLURM_JOB_NODELIST="n25")
        for point in ("begin", "end"):
            iolens("job", point, "--root", root, **variables)
        assert reported(name, **variables)["notes"] == []


def test_a_clock_that_differs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "jobs"
    real = time.time_ns()
    for node, shift_s in ((0, 0), (1, 0), (2, 300)):
        monkeypatch.setattr(time, "time_ns", lambda shift_s=shift_s: real + shift_s * 10**9)
        for point, ended in (("begin", False), ("end", True)):
            root = enzo_node(tmp_path / f"{node}-{point}", node, ended)
            iolens("job", point, "--no-report" if ended else "--root", *(["--root"] if ended else []), root, **environment(folder, SLURM_JOB_NODELIST="r1i0n[0-2]"))  # fmt: skip  # noqa: E501
    monkeypatch.undo()
    notes = reported(4711, **environment(folder))["notes"]
    assert notes == ["r1i0n2 began 300 s after the others: late, or its clock is wrong"]


def test_run_needs_no_scheduler_and_keeps_the_exit_code(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path / "node", opens=20)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path;"
        "from tests.sources.lustre.client_trees import *; tree_2_5(Path(sys.argv[2]), T0 + 9, 55);"
        "print('done'); sys.exit(7)"
    )
    clean = dict.fromkeys(environment(tmp_path), "") | {"IOLENS_JOBS": str(tmp_path / "jobs")}
    done = iolens_process(
        "job", "run", "--root", root, "--", sys.executable, "-c", script, Path(__file__).parents[2], root, **clean
    )
    assert (done.code, done.out) == (7, "done\n")
    assert "  open 35, close 0, stat 0, statfs 0" in done.err.splitlines()


def test_run_of_a_program_that_is_not_there(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path / "node")
    done = iolens_process("job", "run", "--root", root, "--", "no-such-program", IOLENS_JOBS=str(tmp_path / "jobs"))
    assert done.code == 127
    assert done.err.startswith("iolens: no-such-program: No such file or directory\n")


def test_what_was_sampled_and_did_not_move_is_zero_not_unknown(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path / "node")
    done = iolens_process("job", "run", "--root", root, "--", "true", IOLENS_JOBS=str(tmp_path / "jobs"))
    assert "  open 0, close 0, stat 0, statfs 0" in done.err.splitlines()
    assert "not known" not in done.err


def test_run_writes_json_to_a_file(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path / "node")
    out = tmp_path / "io.json"
    done = iolens_process(
        "job",
        "run",
        "--root",
        root,
        "--format",
        "json",
        "--output",
        out,
        "--",
        "true",
        IOLENS_JOBS=str(tmp_path / "jobs"),
    )
    assert (done.code, done.err) == (0, "")
    assert json.loads(out.read_text())["name"] == "true"


def test_begin_outside_of_a_job_says_what_is_missing(tmp_path: Path) -> None:
    done = iolens(
        "job", "begin", "--root", tmp_path, SLURM_JOB_ID="", SLURM_JOBID="", PBS_JOBID="", IOLENS_JOBS=str(tmp_path)
    )
    assert done.code == 1
    assert done.err == (
        "iolens: the environment: none of SLURM_JOB_ID, SLURM_JOBID, PBS_JOBID is set; "
        "expected a batch job, or --job-id\n"
    )


def test_a_job_that_nobody_knows(tmp_path: Path) -> None:
    iolens("ingest", enzo_job(tmp_path), "--store", tmp_path / "store")
    done = iolens("job", "report", "815", "--store", tmp_path / "store", IOLENS_JOBS=str(tmp_path / "none"))
    assert done.code == 1
    assert "no job 815, neither of a scheduler nor sampled" in done.err


def test_a_node_without_lustre_goes_on_and_the_report_says_so(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    variables = environment(tmp_path / "jobs", SLURM_JOB_NODELIST="n1", SLURMD_NODENAME="n1")
    assert iolens("job", "begin", "--root", tmp_path / "node", **variables).code == 0
    done = iolens("job", "end", "--root", tmp_path / "node", **variables)
    assert done.code == 0
    assert "No file system was sampled on any node at both the begin and the end." in done.out.splitlines()


def test_the_report_is_appended_to_the_output_of_the_job(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path, ends=(0, 1, 2))
    output = tmp_path / "slurm-4711.out"
    output.write_text("result: 42\n")
    root = enzo_node(tmp_path / "3-end", 3, ended=True)
    done = iolens("job", "end", "--root", root, "--append-to", output, "--wait", "5s", **environment(folder))
    assert (done.code, done.out) == (0, "")
    assert output.read_text().startswith("result: 42\n\nI/O of job 4711 (enzo) of alice on pleiades\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_appends_as_the_user_and_never_to_a_file_of_others(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path, ends=(0, 1, 2))
    secret = tmp_path / "secret"
    secret.write_text("root's\n")
    secret.chmod(0o600)
    link = tmp_path / "slurm.out"
    link.symlink_to(secret)
    root = enzo_node(tmp_path / "3-end", 3, ended=True)
    arguments = ("job", "end", "--root", root, "--as-user", "nobody", "--append-to")
    done = iolens(*arguments, link, **environment(folder))
    assert (done.code, secret.read_text()) == (1, "root's\n")
    assert done.err == f"iolens: {link}: Permission denied; the report of the job is not appended (as nobody)\n"


def test_a_pipe_is_no_output_of_a_job(tmp_path: Path) -> None:
    folder = enzo_job(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        root = enzo_node(tmp_path / "again", 3, ended=True)
        done = iolens("job", "end", "--root", root, "--append-to", tmp_path / "pipe", **environment(folder))
        assert (done.code, done.err) == (1, f"iolens: {tmp_path / 'pipe'}: not a plain file\n")
    finally:
        os.close(reader)


def test_names_of_jobs_and_nodes_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    root = tree_2_5(tmp_path / "node")
    for name in ("../../evil", ".active", "/etc/passwd", "a\nb", "..", "x" * 5000):
        assert (
            iolens("job", "begin", "--root", root, "--job-id", name, "--node", name, IOLENS_JOBS=str(folder)).code == 0
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs", "node"]
    places = {path.relative_to(folder) for path in folder.rglob("*.job")}
    assert len(places) == 6
    assert all(len(place.parts) == 2 and stat.S_ISREG((folder / place).stat().st_mode) for place in places)


@pytest.mark.parametrize(
    ("name", "expected"), [("12_3", "12_3"), ("12[].srv", "12[].srv"), (".a/b", "%2ea%2fb"), ("", "_")]
)
def test_ids_of_schedulers_stay_readable(name: str, expected: str) -> None:
    assert file_name(name) == expected


def test_begin_and_end_import_no_array_and_no_engine(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path / "node")
    script = (
        "import sys; from iolens.cli.main import iolens as command\n"
        "for point in ('begin', 'end'):\n"
        "    command.main(['job', point, '--root', sys.argv[1]], standalone_mode=False)\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'deltalake', 'narwhals', 'rich', 'scipy', 'matplotlib'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))\n"
        "print([int(line.split()[1]) < 30 * 1024 for line in open('/proc/self/status') if line.startswith('VmHWM')])\n"
    )
    import subprocess

    variables = {**os.environ, **environment(tmp_path / "jobs", SLURM_JOB_NODELIST="n25")}
    done = subprocess.run(
        [sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=True, env=variables
    )
    assert done.stdout.splitlines()[-2:] == ["[]", "[True]"]
