"""A store and a server that the tests of the pages and of the API share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.web.served_centre import ServedCentre, serving
from tests.web.small_centre import OTHER, OWN, make_centre


@pytest.fixture(scope="session")
def small_store(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """The small centre; only read. Its folder has a name that no message may show."""
    return made_once("hidden-place", lambda folder: make_centre(folder / "store")) / "store"


@pytest.fixture(scope="module")
def centre(small_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCentre]:
    """A server of the small centre, with a token of each role; `own` and `other` have the role `user`.

    For one module: its threads and its environment are no other test's.
    """
    state = tmp_path_factory.mktemp("serve") / "state"
    before = os.environ.get("IOLENS_STATE")
    os.environ["IOLENS_STATE"] = str(state)  # as `iolens serve` does
    try:
        with serving(small_store, state) as served:
            served.add("own", "user", OWN)
            served.add("other", "user", OTHER)
            yield served
    finally:
        os.environ.pop("IOLENS_STATE")
        os.environ.update({} if before is None else {"IOLENS_STATE": before})
