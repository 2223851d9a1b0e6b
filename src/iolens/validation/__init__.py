"""Published studies recomputed from their public data: every number of a paper, and how far iolens is from it.

A module `validation/paper_<tag>.py` that defines `STUDY` is a study; nothing else needs to know of it. Recomputing goes
through the product's own sources, store, analyses and plans: what is validated is what users run.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.errors import UsageError
from iolens.validation.checks import VERDICTS, WRONG, CheckedNumber, Study, compare
from iolens.validation.evidence import PublicData, PublicFile

PREFIX: Final = "paper_"


@dataclass(frozen=True, slots=True)
class StudyName:
    """Which study a tag stands for."""

    tag: str
    title: str
    address: str


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of public data; `refused_lines` and `sha256` are null where it is not here or was not needed."""

    path: str
    origin: str
    present: bool
    sha256: str | None
    refused_lines: int | None


@dataclass(frozen=True, slots=True)
class Validation:
    """Every number of the studies, and the verdict. `passed`: none differs without an explanation."""

    passed: bool
    verdicts: dict[str, int]
    studies: list[StudyName]
    data: str | None
    checks: list[CheckedNumber]
    inputs: list[InputFile]


def study_tags() -> list[str]:
    """Tags of all studies, by looking at the modules beside this one."""
    folder = Path(__path__[0])
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith(PREFIX))
    return sorted(
        name.removeprefix(PREFIX).upper() for name in names if "\nSTUDY" in (folder / f"{name}.py").read_text("utf-8")
    )


def get_study(tag: str) -> Study:
    """The study of that tag, in upper or lower case."""
    if tag.upper() not in study_tags():
        raise UsageError(f"no study is called {tag!r}; there are: {', '.join(study_tags())}")
    study: Study = importlib.import_module(f"{__name__}.{PREFIX}{tag.lower()}").STUDY
    return study


def chosen_studies(tags: Sequence[str] = ()) -> list[Study]:
    """Those studies, each once; all of them where none is named."""
    return [get_study(tag) for tag in dict.fromkeys(tag.upper() for tag in tags or study_tags())]


def validate(
    folder: Path | None, tags: Sequence[str] = (), progress: Callable[[str], None] | None = None
) -> Validation:
    """Recompute those studies from the data in `folder`; without it only what needs no data."""
    studies = chosen_studies(tags)
    with PublicData(folder) as evidence:
        lines = []
        for study in studies:
            for check in study.checks:
                lines.append(compare(study.tag, check, evidence))
                if progress is not None:
                    progress(f"{study.tag} {check.where}")
        files = _distinct(file for study in studies for check in study.checks for file in check.needs)
        inputs = [
            InputFile(
                file.path, file.origin, evidence.has(file), evidence.digest(file), evidence.refused.get(file.path)
            )
            for file in files
        ]
    counts: dict[str, int] = {name: sum(line.verdict == name for line in lines) for name in VERDICTS}
    return Validation(
        passed=not any(line.verdict in WRONG for line in lines),
        verdicts=counts,
        studies=[StudyName(study.tag, study.title, study.address) for study in studies],
        data=None if folder is None else str(folder),
        checks=lines,
        inputs=inputs,
    )


def _distinct(files: Iterable[PublicFile]) -> list[PublicFile]:
    return list(dict.fromkeys(files))
