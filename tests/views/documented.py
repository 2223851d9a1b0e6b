"""Every key of a result's JSON stands in its page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_docs import _json_keys

DOCS = Path(__file__).parent.parent.parent / "docs"


def undocumented(result: type, page: str) -> list[str]:
    """Keys that the page does not name."""
    named = set(re.findall(r"`(\w+)`", (DOCS / page).read_text("utf-8")))
    return sorted(set(_json_keys(result)) - named)
