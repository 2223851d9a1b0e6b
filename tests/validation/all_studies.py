"""All studies recomputed once in a run, by the command: tests of the command and of each study read what it found."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from iolens import validation
from iolens.validation import Validation
from iolens.validation.checks import VERDICTS
from tests.cli.command import Finished, iolens


@dataclass(frozen=True)
class AllStudies:
    """How `iolens validate` ended, what it wrote, and the result behind it."""

    finished: Finished
    written: str
    result: Validation

    def of(self, tag: str) -> Validation:
        """The numbers of one study; `passed` is that of all."""
        checks = [line for line in self.result.checks if line.study == tag]
        counts = Counter(line.verdict for line in checks)
        return replace(self.result, checks=checks, verdicts={name: counts[name] for name in VERDICTS})


def recompute(folder: Path, *arguments: object, **environment: str) -> None:
    """`iolens validate ARGUMENTS… -o FILE` in a folder that then holds an `AllStudies`."""
    results = []

    def kept(*given: object) -> Validation:
        results.append(original(*given))  # type: ignore[arg-type]
        return results[-1]

    original = validation.validate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "validate", kept)
        finished = iolens("validate", *arguments, "-o", folder / "written", cwd=folder, **environment)
    (result,) = results
    studies = AllStudies(finished, (folder / "written").read_text("utf-8"), result)
    (folder / "all studies").write_bytes(pickle.dumps(studies))


def recomputed(folder: Path) -> AllStudies:
    """What `recompute` left there."""
    result: AllStudies = pickle.loads((folder / "all studies").read_bytes())
    return result
