"""The pages about plans tell every key of the results, and their examples print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens.plans.endurance import EndurancePlan
from iolens.plans.metadata import MetadataPlan
from iolens.plans.performance import PerformancePlan
from tests.console_examples import examples, missing, run
from tests.test_docs import DOCS, _json_keys

PAGES = {"plan-endurance.md": EndurancePlan, "plan-metadata.md": MetadataPlan, "plan-performance.md": PerformancePlan}


@pytest.mark.parametrize("page", PAGES)
def test_every_json_key_is_documented(page: str) -> None:
    named = set(re.findall(r"`(\w+)`", (DOCS / page).read_text("utf-8")))
    assert sorted(set(_json_keys(PAGES[page])) - named) == []


@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_they_say(page: str, tmp_path: Path) -> None:
    for command, shown in examples(DOCS / page):
        assert missing(shown, run(command, tmp_path).stdout.splitlines()) == [], command
