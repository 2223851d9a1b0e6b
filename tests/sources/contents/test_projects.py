"""An inode's project by its directory or its project id."""

from __future__ import annotations

import pytest

from iolens.config import ProjectRule
from iolens.sources.contents.inode_counts import Projects

RULE = ProjectRule(("/scratch/shared/*/{project}", "/scratch/p-{project}", "/scratch/{project}"), {"5001": "climate"})


@pytest.mark.parametrize(
    ("path", "project"),
    [
        ("/scratch/fusion/run/1/out.h5", "fusion"),
        ("/scratch/fusion", "fusion"),
        ("/scratch/p-fusion/run", "fusion"),
        ("/scratch/shared/2026/fusion/x", "fusion"),
        ("/scratch/shared/2026", "shared"),  # too short for the first rule, right for the last
        ("/scratch/two\nlines/x", "two\nlines"),
        ("/scratch/", None),
        ("/scratch", None),
        ("/scratchy/fusion", None),
        ("/home/fusion/scratch/x", None),
        ("scratch/fusion", None),
    ],
)
def test_the_first_rule_that_matches_names_the_project(path: str, project: str | None) -> None:
    assert Projects(RULE).of_path(path) == project


def test_characters_of_expressions_mean_themselves() -> None:
    projects = Projects(ProjectRule(("/a.b+(c)/{project}",)))
    assert projects.of_path("/a.b+(c)/x") == "x"
    assert projects.of_path("/aXb+(c)/x") is None


def test_ids_have_names_or_are_called_by_their_number() -> None:
    projects = Projects(RULE)
    assert projects.of_id(5001) == projects.of_id("5001") == "climate"
    assert projects.of_id(7) == "7"
    assert projects.of_id(0) is None
    assert projects.of_id(None) is None


def test_without_a_rule_no_path_tells_a_project() -> None:
    assert not Projects(ProjectRule()).has_directories
    assert Projects(ProjectRule()).of_path("/scratch/fusion") is None
