"""Decides by measurement which tests are in `make test` and which only in `make test-all`: writes tests/long_tests.txt.

    python scripts/choose_tests.py seconds FOLDER   run all tests that need Python alone, and record what each costs
    python scripts/choose_tests.py faults FOLDER    put each fault of mutations.py in, and record which tests notice it
    python scripts/choose_tests.py write FOLDER     choose, and write the list

A test function (with all its cases) is long if it takes more than MOST_S, or starts a program that is not Python. For
each fault that only long ones notice, the cheapest of them is taken into `make test`, and so are the contracts in KEPT.
A test that is not in the list is in `make test`, so a new test needs no entry.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from mutations import MUTATIONS, REPOSITORY, mutated

LIST = REPOSITORY / "tests" / "long_tests.txt"
MOST_S = 0.7  # of all cases of a function, in processor time: more than half of all of it lies in those above
KEPT = (  # contracts: what every source, table, verb and answer must do
    "tests/views/test_all_tables.py::",
    "tests/sources/test_contract.py::",
    "tests/web/access/test_permissions.py::",
    "tests/test_imports.py::",
    "tests/test_names.py::",
    "tests/analyses/intervals/test_parts.py::",
    "tests/cli/test_runs.py::test_every_verb_has_json_a_table_and_figures",
)
HEAD = f"""\
# Tests that are only in `make test-all`: processor seconds of all cases, function, other programs that it starts.
# Written by scripts/choose_tests.py (those above {MOST_S} s, those with programs); a line may be added by hand.
"""
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[^\s\[]+)", re.MULTILINE)


def record_seconds(folder: Path) -> None:
    """As `make test` would run them: two processes, without captures."""
    command = ["-p", "measure_tests", f"--measured={folder.absolute() / 'seconds'}", "-n", "2", "--dist", "loadfile"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-loadscope-reorder", "-m", "not live", *command],
        cwd=REPOSITORY,
        env={**os.environ, "IOLENS_SHARED": "nowhere", "PYTHONPATH": "scripts"},
        check=False,
    )


def record_faults(folder: Path) -> None:
    """A line of JSON for each fault: where it is, and the functions that notice it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "faults.jsonl").open("w") as stream:
        for mutation in MUTATIONS:
            with tempfile.TemporaryDirectory(prefix="iolens-mutation-") as copy:
                if not mutated(mutation, Path(copy)):
                    print(f"NOT THERE: {mutation.path}: {mutation.text}")
                    continue
                done = subprocess.run(
                    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not live", *mutation.files],
                    cwd=REPOSITORY,
                    env={**os.environ, "PYTHONPATH": copy, "IOLENS_SHARED": "nowhere"},
                    capture_output=True,
                    text=True,
                    check=False,
                )
            line = {
                "fault": f"{mutation.path}: {mutation.text}",
                "noticed_by": sorted(set(FAILED.findall(done.stdout))),
            }
            print(json.dumps(line), file=stream, flush=True)


def write(folder: Path) -> None:
    """The list of long tests."""
    seconds: dict[str, float] = defaultdict(float)
    programs: dict[str, set[str]] = defaultdict(set)
    for line in _lines(sorted((folder / "seconds").glob("*.jsonl"))):
        function = line["test"].partition("[")[0]
        seconds[function] += line["processor_s"]
        programs[function] |= set(filter(None, map(_foreign, line["programs"])))
    long = {name for name, taken in seconds.items() if taken > MOST_S and not name.startswith(KEPT)}
    with_programs = {name for name in seconds if programs[name]}
    for line in _lines([folder / "faults.jsonl"]):
        noticing = set(line["noticed_by"]) & seconds.keys() - with_programs
        if not noticing:
            print(f"noticed by no test that needs Python alone: {line['fault']}")
        elif noticing <= long:
            long.remove(min(noticing, key=lambda name: seconds[name]))
    rows = [
        f"{seconds[name]:6.2f}  {name}{''.join(f'  {program}' for program in sorted(programs[name]))}\n"
        for name in sorted(long | with_programs)
    ]
    LIST.write_text(HEAD + "".join(rows))
    kept_s = sum(taken for name, taken in seconds.items() if name not in long | with_programs)
    print(f"{len(rows)} functions of {len(seconds)} are long; the others take {kept_s:.0f} s of one core")


def _foreign(program: str) -> str | None:
    """The name of a program that is neither Python nor from this environment."""
    name = Path(program).name
    is_ours = name.startswith("python") or Path(program).is_relative_to(sys.prefix)
    return None if is_ours or not name else name


def _lines(paths: Iterable[Path]) -> Iterator[dict[str, list[str] | str | float]]:
    for path in paths:
        yield from map(json.loads, path.read_text().splitlines())


ACTIONS = {"seconds": record_seconds, "faults": record_faults, "write": write}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ACTIONS:
        sys.exit(__doc__)
    ACTIONS[sys.argv[1]](Path(sys.argv[2]))
