"""`iolens-agent.pyz`: one file without packages, on the oldest Python here, with the answers of the full package."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from make_agent import MOST_BYTES, OLDEST, for_old_python, needed_modules

from tests.cli.command import iolens
from tests.cli.test_job import assert_enzo, environment
from tests.sources.lustre.client_trees import enzo_node, tree_2_15
from tests.sources.lustre.test_lustre_proc import tree_of_2_15

PYTHONS = [path for minor in range(OLDEST[1], 15) if (path := shutil.which(f"python3.{minor}"))]


def works(python: str) -> bool:
    """Whether it is really there: a version manager may only pretend."""
    done = subprocess.run([python, "-I", "-S", "-c", ""], capture_output=True, check=False)
    return done.returncode == 0


OLDEST_HERE = next((python for python in PYTHONS if works(python)), sys.executable)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import make_agent

    path = tmp_path_factory.mktemp("agent") / "iolens-agent.pyz"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(make_agent, "OUTPUT", path)
        make_agent.main()
    return path


def run(agent: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """On a Python that sees no installed package."""
    return subprocess.run(
        [OLDEST_HERE, "-I", "-S", str(agent), *map(str, arguments)],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", **variables}, timeout=120,
    )  # fmt: skip


def test_it_is_one_small_file(agent: Path) -> None:
    assert agent.stat().st_size <= MOST_BYTES
    assert run(agent, "--version").stdout == "iolens-agent 0.1.0\n"


def test_its_modules_are_those_of_the_package(agent: Path) -> None:
    names = {f"{name.replace('.', '/')}" for name in needed_modules()}
    with zipfile.ZipFile(agent) as archive:
        inside = {name.removesuffix(".py").removesuffix("/__init__") for name in archive.namelist()}
    assert inside - {"__main__", "names_of_later_versions"} == names
    assert "iolens/store/store" not in inside


def test_every_module_loads_without_packages(agent: Path) -> None:
    """All but what needs PCP's own module."""
    names = sorted(name for name in needed_modules() if not name.startswith("iolens.agent.pcp"))
    script = (
        f"import importlib, sys; sys.path.insert(0, {str(agent)!r})\n"
        f"for name in {names!r}: importlib.import_module(name)"
    )
    done = subprocess.run([OLDEST_HERE, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_job_has_the_report_of_the_full_package(agent: Path, tmp_path: Path) -> None:
    variables = environment(tmp_path / "jobs")
    for node in range(4):
        for point, ended in (("begin", False), ("end", True)):
            root = enzo_node(tmp_path / f"{node}-{point}", node, ended)
            more = ["--no-report"] if ended else []
            assert run(agent, "job", point, "--root", root, *more, **variables).stderr == ""
    done = run(agent, "job", "report", "4711", "--format", "json", **variables)
    assert_enzo(json.loads(done.stdout))
    assert done.stdout == iolens("job", "report", "4711", "--format", "json", **variables).out


def test_run_and_end_print_the_report(agent: Path, tmp_path: Path) -> None:
    root = tree_2_15(tmp_path / "node")
    done = run(agent, "job", "run", "--root", root, "--", "/bin/false", IOLENS_JOBS=str(tmp_path / "jobs"))
    assert done.returncode == 1
    assert "  open 0, close 0, stat 0, statfs 0" in done.stderr.splitlines()


def test_what_it_spools_the_full_package_loads(agent: Path, tmp_path: Path) -> None:
    root = tree_of_2_15(tmp_path / "server")
    done = run(agent, "collect", "--once", "--root", root, "--spool", tmp_path / "spool")
    assert done.returncode == 0, done.stderr
    loaded = iolens("ingest", "spool", tmp_path / "spool", "--store", tmp_path / "store")
    assert loaded.code == 0, loaded.err


def test_doctor_and_prometheus(agent: Path, tmp_path: Path) -> None:
    root = tree_of_2_15(tmp_path / "server")
    assert "readable" in run(agent, "doctor", "--root", root, "--spool", tmp_path / "spool").stdout
    page = run(agent, "export", "prometheus", "--once", "--root", root).stdout
    assert "# TYPE lustre_" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("job", "begin"), "none of SLURM_JOB_ID, SLURM_JOBID, PBS_JOBID is set"),
        (("job", "report", "815"), "no such folder"),
        (("job", "run"), "no command to run"),
        (("collect", "--interval", "5 parsecs"), "unknown unit"),
        (("export", "prometheus", "--listen", "nowhere"), "--listen"),
    ],
)
def test_a_wrong_call_is_one_message(agent: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(agent, *arguments, IOLENS_JOBS=str(tmp_path))
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("@dataclass(frozen=True, slots=True)\nclass A: pass", "@dataclass(frozen=True)\nclass A:\n    pass"),
        ("isinstance(a, int | str)", "isinstance(a, (int, str))"),
        ("A = dict[str, int | None]", "A = dict[str, __import__('typing').Union[int, None]]"),
        ("flags = os.O_RDWR | os.O_CREAT", "flags = os.O_RDWR | os.O_CREAT"),
        ("both = FIRST | SECOND", "both = FIRST | SECOND"),
        ("zip(a, b, strict=True)", "zip(a, b)"),
        ("re.compile('[a-z]++x*+')", "re.compile('[a-z]+x*')"),
        ("re.compile('a\\\\++')", "re.compile('a\\\\++')"),
        ("from datetime import UTC, date", "from datetime import date\nfrom names_of_later_versions import UTC"),
        ("from typing import Self", "pass"),
    ],
)
def test_new_words_become_old_ones(new: str, old: str) -> None:
    assert for_old_python(new) == f"{old}\n"


def test_what_cannot_become_old_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        for_old_python("match a:\n    case 1: pass\n")
