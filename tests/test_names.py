"""Names that a reader meets mean one thing."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from plain_words import refused

PACKAGE = Path(__file__).parent.parent / "src" / "iolens"
CLASS = re.compile(r"^ *class (\w+)[(:\[]", re.MULTILINE)


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for name in CLASS.findall(path.read_text("utf-8")):
            homes[name].append(str(path.relative_to(PACKAGE)))
    assert homes["Store"] == ["store/store.py"]
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_words_that_only_this_project_understands_are_gone() -> None:
    assert refused() == []
