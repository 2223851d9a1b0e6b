"""`iolens-agent.pyz`: one file without packages, on the oldest Python here, with the answers of the full package."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import agent_start
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


@cache
def oldest_here() -> str:
    """Looked for when a test needs it: it takes a process for each."""
    return next((python for python in PYTHONS if works(python)), sys.executable)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import make_agent

    path = tmp_path_factory.mktemp("agent") / "iolens-agent.pyz"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(make_agent, "OUTPUT", path)
        make_agent.main()
    return path


def run(agent: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """On a Python that sees no installed package, and has no home of its own."""
    variables = {"XDG_CACHE_HOME": str(agent.parent / "cache"), **variables}
    return subprocess.run(
        [oldest_here(), "-I", "-S", str(agent), *map(str, arguments)],
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
    done = subprocess.run([oldest_here(), "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
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


def test_clients_too(agent: Path, tmp_path: Path) -> None:
    root = tree_2_15(tmp_path / "node")
    shown = run(agent, "doctor", "--root", root, "--spool", tmp_path / "spool").stdout
    assert "(client): llite.stats, osc.stats, osc.rpc_stats" in shown
    page = run(agent, "export", "prometheus", "--once", "--root", root).stdout
    assert 'lustre_stats_total{component="client",filesystem="lake",' in page
    done = run(agent, "collect", "--once", "--root", root, "--spool", tmp_path / "spool")
    assert "1 ticks, 1 targets, 5 samples" in done.stdout, done.stderr


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


# Modules that an earlier start compiled


@pytest.fixture(scope="module")
def changed(agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled modules of the agent, with another version inside: a start that uses them says so."""
    place = tmp_path_factory.mktemp("changed")
    done = run(agent, "--version", XDG_CACHE_HOME=str(place))
    assert (done.stdout, done.stderr) == ("iolens-agent 0.1.0\n", "")
    (path,) = (place / "iolens-agent").iterdir()
    codes = marshal.loads(path.read_bytes()[4:])
    with zipfile.ZipFile(agent) as archive:
        text = archive.read("iolens/__init__.py").decode().replace("0.1.0", "from the cache")
    script = f"import marshal, sys; sys.stdout.buffer.write(marshal.dumps(compile({text!r}, 'changed', 'exec')))"
    codes["iolens/__init__.py"] = subprocess.run([oldest_here(), "-c", script], capture_output=True, check=True).stdout
    content = marshal.dumps(codes)
    path.write_bytes(zlib.crc32(content).to_bytes(4, "big") + content)
    return place


def copied(changed: Path, place: Path) -> Path:
    """A copy of them to be spoiled; its file."""
    shutil.copytree(changed, place)
    (path,) = (place / "iolens-agent").iterdir()
    return path


def version(agent: Path, place: Path) -> str:
    done = run(agent, "--version", XDG_CACHE_HOME=str(place))
    assert done.stderr == ""
    return done.stdout.removeprefix("iolens-agent ").strip()


def test_modules_are_compiled_once(agent: Path, changed: Path, tmp_path: Path) -> None:
    path = copied(changed, tmp_path / "cache")
    assert version(agent, tmp_path / "cache") == "from the cache"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_every_module_loads_from_its_compiled_code(agent: Path, tmp_path: Path) -> None:
    """With the answers of the others: sources and rules are found by their file, which is in the archive."""
    names = sorted(name for name in needed_modules() if not name.startswith("iolens.agent.pcp"))
    script = (
        f"import importlib, runpy, sys; sys.path.insert(0, {str(agent)!r}); start = runpy.run_path({str(agent)!r})\n"
        f"start['start']({str(agent)!r})\nfor name in {names!r}: importlib.import_module(name)\n"
        "loaders = {type(sys.modules[name].__loader__).__name__ for name in sys.modules if name.startswith('iolens')}\n"
        "from iolens.sources import source_names\nprint(loaders, {'spool', 'lustre-proc'} <= {*source_names()})"
    )
    done = subprocess.run(
        [oldest_here(), "-I", "-S", "-c", script],
        capture_output=True, text=True, check=False, env={"XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("{'CompiledModules'} True\n", "")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


NOT_TO_BE_TRUSTED: dict[str, Callable[[Path], object]] = {
    "a folder the group can write to": lambda path: path.parent.chmod(0o770),
    "a folder all can write to": lambda path: path.parent.chmod(0o707),
    "a file the group can write to": lambda path: path.chmod(0o620),
    "a file all can write to": lambda path: path.chmod(0o602),
    "a folder above that all can write to": lambda path: path.parent.parent.chmod(0o777),
    "a link": link,
    "damage": flip,
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "nothing in it": lambda path: os.truncate(path, 0),
}


@pytest.mark.parametrize("change", NOT_TO_BE_TRUSTED.values(), ids=NOT_TO_BE_TRUSTED.keys())
def test_compiled_modules_that_others_could_have_written_are_not_used(
    agent: Path, changed: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    place = tmp_path / "cache"
    change(copied(changed, place))
    assert version(agent, place) == "0.1.0"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to someone else")
@pytest.mark.parametrize("which", ["file", "folder", "folder above"])
def test_compiled_modules_of_someone_else_are_not_used(agent: Path, changed: Path, tmp_path: Path, which: str) -> None:
    place = tmp_path / "cache"
    path = copied(changed, place)
    os.chown({"file": path, "folder": path.parent, "folder above": place}[which], 65534, 65534)
    assert version(agent, place) == "0.1.0"


def test_a_folder_is_private_to_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "iolens-agent"
    folder.mkdir(mode=0o700)
    assert agent_start.is_private(folder)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert not agent_start.is_private(folder)


@pytest.mark.parametrize("place", ["/dev/null", "relative/to/nothing", ""])
def test_without_a_place_for_compiled_modules_it_starts_all_the_same(agent: Path, tmp_path: Path, place: str) -> None:
    done = run(agent, "--version", XDG_CACHE_HOME=place, HOME="/dev/null")
    assert (done.stdout, done.stderr) == ("iolens-agent 0.1.0\n", "")


def test_few_files_of_other_versions_are_kept(tmp_path: Path) -> None:
    for number in range(8):
        path = tmp_path / f"{number}.modules"
        path.touch()
        os.utime(path, (number, number))
    agent_start.remove_oldest(tmp_path / "2.modules")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["2", "4", "5", "6", "7"]
