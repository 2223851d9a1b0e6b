"""Every key of the results is named on their pages."""

from __future__ import annotations

import re

import pytest

from iolens.analyses.capacity.analysis import Capacity
from iolens.plans.capacity import CapacityPlan
from tests.test_docs import DOCS, _json_keys


@pytest.mark.parametrize(("result", "page"), [(Capacity, "capacity.md"), (CapacityPlan, "planning.md")])
def test_every_json_key_is_documented(result: type, page: str) -> None:
    named = set(re.findall(r"`(\w+)`", (DOCS / page).read_text("utf-8")))
    assert sorted(set(_json_keys(result)) - named) == []
