"""Files for contributors: the site's navigation is complete, CI tests what pyproject.toml promises, YAML parses."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mkdocs_hooks
import mutations
import pytest
import yaml
from packaging.requirements import Requirement

from iolens.analyses import analysis_names
from tests import quick

REPOSITORY = Path(__file__).parent.parent
YAML = sorted([*REPOSITORY.glob("*.yml"), *REPOSITORY.glob(".*.yaml"), *REPOSITORY.glob(".github/**/*.yml")])
MARKDOWN = [REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "SECURITY.md", REPOSITORY / "CODE_OF_CONDUCT.md"]


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without making the Python objects it names."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def _loaded(name: str) -> Any:
    return yaml.load((REPOSITORY / name).read_text("utf-8"), _Loader)


def _pages(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else _pages(target)


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_parses(path: Path) -> None:
    assert isinstance(yaml.load(path.read_text("utf-8"), _Loader), dict)


def test_all_yaml_files_are_seen() -> None:
    names = {path.name for path in YAML}
    assert names >= {"mkdocs.yml", "ci.yml", "bug.yml", "feature.yml", ".pre-commit-config.yaml"}


def test_the_navigation_lists_every_page_once() -> None:
    listed = Counter(_pages(_loaded("mkdocs.yml")["nav"]))
    pages = [path.relative_to(REPOSITORY / "docs").as_posix() for path in (REPOSITORY / "docs").rglob("*.md")]
    assert listed == Counter([*pages, *mkdocs_hooks.PAGES])


def test_the_site_is_strict_and_loads_nothing_from_elsewhere() -> None:
    site = _loaded("mkdocs.yml")
    assert site["strict"] is True
    assert site["theme"]["font"] is False
    assert "offline" not in site["plugins"]  # its search loads a script from unpkg.com
    assert not {"extra_css", "extra_javascript"} & set(site)


def test_the_reference_names_what_there_is() -> None:
    """Without mkdocs, which is not needed for the tests."""
    page = (REPOSITORY / "docs" / "api.md").read_text("utf-8")
    entries = re.findall(r"^::: (\S+)$(?:\n +options:\n +members: \[(.*)\])?", page, re.MULTILINE)
    assert len(entries) >= 15
    for path, members in entries:
        named = pkgutil.resolve_name(path)
        for member in filter(None, members.split(", ")):
            assert (getattr(named, member).__doc__ or "").strip(), f"{path}.{member} has no docstring"


def test_the_reference_lists_every_analysis() -> None:
    page = (REPOSITORY / "docs" / "api.md").read_text("utf-8")
    assert [name for name in analysis_names() if f"`{name}`" not in page or f"[{name}" not in page] == []


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.name)
def test_links_of_the_pages_beside_docs_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
    assert [link for link in links if "://" not in link and not (REPOSITORY / link).exists()] == []


def test_contributing_names_every_target_of_the_makefile() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert targets is not None
    page = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    assert [name for name in targets[1].split() if f"| `make {name}` |" not in page] == []


def test_ci_tests_the_versions_of_python_that_are_promised() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    jobs = _loaded(".github/workflows/ci.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    lowest = next(step["with"] for step in jobs["lowest"]["steps"] if "with" in step)
    assert lowest["python-version"] == named[0]


def test_ci_has_every_kind_of_job() -> None:
    jobs = _loaded(".github/workflows/ci.yml")["jobs"]
    commands = {name: " ".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()}
    assert "make lint" in commands["lint"]
    assert "make test" in commands["test"]
    assert "make test-all" in commands["test-all"]
    assert "--resolution lowest-direct" in commands["lowest"]
    assert "python -m build" in commands["wheel"]
    assert "make docs" in commands["docs"]
    assert "git diff --exit-code" in commands["docs"]


def test_actions_are_named_by_digest() -> None:
    uses = re.findall(r"uses: (\S+)(.*)", (REPOSITORY / ".github/workflows/ci.yml").read_text())
    assert uses
    assert [name for name, said in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) or " # v" not in said] == []


@pytest.mark.parametrize(("lock", "extras"), [("ci", ["all", "test-all", "lint", "docs"]), ("serve", [])])
def test_locks_hold_every_dependency_in_a_version_that_it_may_have_with_hashes(lock: str, extras: list[str]) -> None:
    entries = re.split(r"\n(?=\w)", (REPOSITORY / "requirements" / f"{lock}.txt").read_text().strip())
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    pinned = [Requirement(entry.partition(" \\")[0]) for entry in entries]
    versions = {(item.name.lower(), next(iter(item.specifier)).version) for item in pinned}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    needed = [item for item in map(Requirement, wanted) if item.name != "iolens"]
    assert needed
    for item in needed:
        locked = [version for name, version in versions if name == item.name.lower()]
        assert locked, item
        assert all(version in item.specifier for version in locked), item


def test_mkdocs_is_not_needed_for_the_tests() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert [name for name in extras["test"] if name.startswith("mkdocs")] == []
    assert any(name.startswith("mkdocs-material") for name in extras["docs"])


def test_mutations_follow_the_code() -> None:
    texts = {path: (mutations.PACKAGE / path).read_text("utf-8") for path, *_ in mutations.MUTATIONS}
    assert [item for item in mutations.MUTATIONS if texts[item.path].count(item.text) != 1] == []
    assert [name for item in mutations.MUTATIONS for name in item.files if not (REPOSITORY / name).exists()] == []


def test_long_tests_are_there() -> None:
    functions = {name.partition("::")[::2] for name in quick.long_tests()}
    assert [
        f"{path}::{name}"
        for path, name in sorted(functions)
        if f"def {name.rpartition('::')[2]}(" not in (REPOSITORY / path).read_text("utf-8")
    ] == []
