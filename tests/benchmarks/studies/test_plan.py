"""The plan of a study: what is written is read again, and what is wrong is refused with the file and what it takes."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.benchmarks.studies.cache_study import CacheParameters
from iolens.benchmarks.studies.ior_study import IorStudyParameters
from iolens.benchmarks.studies.metadata_study import MetadataParameters
from iolens.benchmarks.studies.plan import (
    FORMAT,
    LONGEST_PLAN,
    MOST_REPEATS,
    NAME,
    StudyLimits,
    StudyPlace,
    StudyPlan,
    exact_size,
    new_study_name,
    parameters_of,
    plan_text,
    read_plan,
    study_points,
)
from iolens.benchmarks.studies.sequential_study import SequentialParameters
from iolens.benchmarks.studies.stripe_study import StripeStudyParameters
from iolens.errors import InputError
from iolens.units import GIB, KIB, MIB

PLACES = (StudyPlace("home", Path("/home/me")), StudyPlace("lake", Path("/lake/a b"), "lake"))
DEFAULTS = {
    "sequential": SequentialParameters(),
    "ior": IorStudyParameters(),
    "stripe": StripeStudyParameters(),
    "cache": CacheParameters(),
    "metadata": MetadataParameters(),
}
CHANGED = {
    "sequential": SequentialParameters(3 * MIB, (512, 4 * KIB), (1, 16), (MIB, 32 * MIB), direct=True, fsync=False),
    "ior": IorStudyParameters(
        (1, 8), (GIB, 3 * GIB), (4096,), ("shared",), (1,), (MIB,), "MPIIO", True, False, False, 'srun -n {tasks} "x"'
    ),
    "stripe": StripeStudyParameters(GIB + 1, (2,), (MIB,), (1,), direct=True, fsync=False),
    "cache": CacheParameters(None, 8 * GIB, 56 * GIB, 4096),
    "metadata": MetadataParameters((1, 4), 7, 3901, shared_directory=True, launcher="mpiexec -n {tasks}"),
}
WHOLE = f"""
format = "{FORMAT}"
name = "blocks"
kind = "sequential"
repeats = 3
[limits]
max_bytes = "1GiB"
[[places]]
name = "scratch"
path = "/scratch"
[parameters]
file_bytes = "1MiB"
block_bytes = ["4KiB", 65536]
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "plan.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(folder: Path, text: str | bytes) -> StudyPlan:
    return read_plan(written(folder, text), parameters_of)


def refusal(folder: Path, text: str | bytes) -> str:
    """Why a plan is refused: one line that begins with the file."""
    with pytest.raises(InputError) as caught:
        read(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'plan.toml'}: ")
    assert "; expected " in message
    assert "\n" not in message
    assert len(message) < 600
    return message.removeprefix(f"{folder / 'plan.toml'}: ")


@pytest.mark.parametrize("parameters", [*DEFAULTS.items(), *CHANGED.items()], ids=lambda pair: f"{pair[0]}")
def test_a_plan_is_read_as_it_was_written(tmp_path: Path, parameters: tuple[str, Any]) -> None:
    kind, values = parameters
    plan = StudyPlan(new_study_name(kind), kind, PLACES, values, 4, StudyLimits(17 * MIB + 1, 12.5, 66.6))
    assert read(tmp_path, plan_text(plan)) == plan


def test_every_parameter_is_changed_in_one_of_these() -> None:
    for kind, changed in CHANGED.items():
        same = [f.name for f in fields(changed) if getattr(changed, f.name) == getattr(DEFAULTS[kind], f.name)]
        assert same in ([], ["direct"]), kind  # no O_DIRECT with MPIIO


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    text = f'format = "{FORMAT}"\nname = "a"\nkind = "cache"\n[[places]]\nname = "x"\npath = "/x"\n'
    assert read(tmp_path, text) == StudyPlan("a", "cache", (StudyPlace("x", Path("/x")),), CacheParameters())


def test_no_memory_limit_is_not_the_usual_one(tmp_path: Path) -> None:
    plan = StudyPlan("a", "cache", PLACES, CacheParameters(memory_limit_bytes=None))
    assert 'memory_limit_bytes = "none"' in plan_text(plan)
    assert read(tmp_path, plan_text(plan)).parameters.memory_limit_bytes is None


def test_sizes_have_units_and_are_exact(tmp_path: Path) -> None:
    assert [exact_size(size) for size in (0, 1, 1000, 4096, 3 * MIB, GIB, GIB + 1)] == [
        "0", "1", "1000", "4KiB", "3MiB", "1GiB", "1073741825",
    ]  # fmt: skip
    plan = read(tmp_path, WHOLE)
    assert plan.parameters.file_bytes == MIB
    assert plan.parameters.block_bytes == (4096, 65536)
    assert plan.limits.max_bytes == GIB


def test_the_same_size_in_other_words_is_one_case(tmp_path: Path) -> None:
    plan = read(tmp_path, WHOLE.replace('["4KiB", 65536]', '["4KiB", 4096, "0.00390625MiB"]'))
    assert len({point.key for point in study_points(plan)}) == len(study_points(plan)) == plan.repeats


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (FORMAT, "iolens study, version 9", f"expected \"{FORMAT}\""),
        (f'format = "{FORMAT}"', "", "format = None"),
        ('"sequential"', '"sequental"', "a kind of study"),
        ('"sequential"', "7", "kind = 7"),
        ('"sequential"', "['sequential']", "a kind of study"),
        ('"blocks"', '"../../etc"', "letters, digits"),
        ('"blocks"', '".."', "letters, digits"),
        ('"blocks"', '""', "letters, digits"),
        ('"blocks"', '"a/b"', "letters, digits"),
        ('"blocks"', '"a\\nb"', "letters, digits"),
        ('"blocks"', '"a\\u0000b"', "letters, digits"),
        ('"blocks"', f'"{"a" * 101}"', "letters, digits"),
        ("repeats = 3", "repeats = 0", f"a whole number from 1 to {MOST_REPEATS}"),
        ("repeats = 3", "repeats = -1", "repeats = -1"),
        ("repeats = 3", "repeats = 2.5", "repeats = 2.5"),
        ("repeats = 3", "repeats = true", "repeats = True"),
        ("repeats = 3", 'repeats = "3"', "repeats = '3'"),
        ("repeats = 3", f"repeats = {10**30}", "a whole number"),
        ("repeats = 3", f"repeats = {'9' * 5000}", "TOML"),
        ("repeats = 3", f"repeats = 0x{'f' * 9000}", "thousands of digits"),
        ("repeats = 3", "repeat = 3", "repeat is not known"),
        ('max_bytes = "1GiB"', 'max_bytes = "1 gibbon"', "a size such as 1MiB"),
        ('max_bytes = "1GiB"', "max_bytes = -1", "max_bytes = -1"),
        ('max_bytes = "1GiB"', f"max_bytes = {2**63}", "a whole number"),
        ('max_bytes = "1GiB"', 'max_bytes = "9EiB"', "too large"),
        ('max_bytes = "1GiB"', "max_seconds = nan", "max_seconds = nan"),
        ('max_bytes = "1GiB"', "max_seconds = inf", "max_seconds = inf"),
        ('max_bytes = "1GiB"', f"max_seconds = {10**400}", "a number"),
        ('max_bytes = "1GiB"', 'max_seconds = "1h"', "a number"),
        ('max_bytes = "1GiB"', "max_fullness_pct = 101", "at most 100"),
        ('max_bytes = "1GiB"', "max_fulness_pct = 90", "[limits] max_fulness_pct is not known"),
        ('[limits]\nmax_bytes = "1GiB"', "limits = 5", "a table [limits]"),
        ('"1MiB"', '"1MiB and more"', "file_bytes"),
        ('"1MiB"', "1.5", "a whole number"),
        ('"1MiB"', "true", "a whole number"),
        ('"1MiB"', '["1MiB"]', "a whole number"),
        ('["4KiB", 65536]', "[]", "a list with at least one member"),
        ('["4KiB", 65536]', '"4KiB"', "a list with at least one member"),
        ('["4KiB", 65536]', '["4KiB", [1]]', "a whole number"),
        ('["4KiB", 65536]', "[-4096]", "a whole number"),
        ('file_bytes = "1MiB"', "direct = 1", "true or false"),
        ('file_bytes = "1MiB"', 'direct = "none"', "true or false"),
        ('file_bytes = "1MiB"', "fiel_bytes = 5", "[parameters] fiel_bytes is not known"),
        ('file_bytes = "1MiB"', 'stripe_counts = ["a"]', "a whole number"),
        ('name = "scratch"', "name = 5", "name and path"),
        ('name = "scratch"', 'name = ""', "name and path"),
        ('name = "scratch"', 'name = "a\\u0007b"', "control characters"),
        ('path = "/scratch"', "", "name and path"),
        ('path = "/scratch"', 'path = ""', "name and path"),
        ('path = "/scratch"', 'path = "/a\\u0000b"', "control characters"),
        ('path = "/scratch"', 'path = "/a"\nfilesystem = 7', "a name in quotes"),
        ('path = "/scratch"', 'path = "/a"\nhost = "x"', "[[places]] host is not known"),
        ('[[places]]\nname = "scratch"\npath = "/scratch"', "", "at least one, with name and path"),
        ('[[places]]\nname = "scratch"\npath = "/scratch"', "[places]\nname='a'\npath='/a'", "at least one"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_what_is_expected(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert WHOLE.count(before) == 1
    assert words in refusal(tmp_path, WHOLE.replace(before, after))


def test_two_places_of_one_name_are_refused(tmp_path: Path) -> None:
    second = '[[places]]\nname = "scratch"\npath = "/other"\n'
    assert "two places of one name" in refusal(tmp_path, WHOLE.replace("[parameters]", f"{second}[parameters]"))


@pytest.mark.parametrize(
    "octets",
    [b"", b"\xff\xfe\x00", b"\x00" * 40, b"{", b"name = 'caf\xe9'", b"a = " + b"[" * 5000, b"\x7fELF\x02\x01", b"= 5"],
    ids=repr,
)
def test_what_is_no_plan_at_all_is_refused(tmp_path: Path, octets: bytes) -> None:
    refusal(tmp_path, octets)


def test_a_file_that_is_far_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(InputError, match=r"longer than 1MiB; expected the plan of a study"):
        read_plan(path, parameters_of)
    assert LONGEST_PLAN == MIB


@pytest.mark.parametrize(("kind", "words"), [("none", "No such file"), ("folder", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / "plan.toml"
    if kind == "folder":
        path.mkdir()
    with pytest.raises(InputError, match=words):
        read_plan(path, parameters_of)


SAID = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=50)


@given(name=SAID, path=SAID, filesystem=st.none() | SAID, launcher=st.none() | st.text())
def test_any_name_that_can_be_said_is_read_again(
    name: str, path: str, filesystem: str | None, launcher: str | None
) -> None:
    place = StudyPlace(name, Path(path), filesystem)
    plan = StudyPlan("a", "ior", (place,), replace(IorStudyParameters(), launcher=_encodable(launcher)))
    document = tomllib.loads(plan_text(plan))
    assert document["places"][0] == {
        "name": name, "path": str(Path(path)), **({} if filesystem is None else {"filesystem": filesystem})
    }  # fmt: skip
    assert document["parameters"].get("launcher") == plan.parameters.launcher


def _encodable(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "replace").decode()


def test_names_of_studies_are_never_the_same_and_always_accepted() -> None:
    names = {new_study_name("ior") for _ in range(100)}
    assert len(names) == 100
    assert all(NAME.fullmatch(name) for name in names)
