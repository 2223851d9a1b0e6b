"""How busy the metadata servers are: operations and Metadata Utilization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iolens.question import EVERYBODY, question
from iolens.questions.shared import CALIBRATION, EVERY

if TYPE_CHECKING:
    from iolens.analyses.metadata import Metadata
    from iolens.questions.asking import Ask


@question(
    "metadata", "How busy the metadata servers are: operations and MDU",
    replace(
        CALIBRATION,
        meaning="mdtest (results stored for the file system), mdtest:NAME (a run or another file system), or none",
    ),
    EVERY, rights=EVERYBODY,
    examples=(
        "--filesystem scratch --from 2026-01-05 --to 2026-01-06",
        "-f scratch --calibration mdtest:testbed --format json",
        "-f scratch --figure operations.png --figure mdu=mdu.svg",
    ),
)  # fmt: skip
def metadata(ask: Ask, **options: Any) -> Metadata:
    """Load on the metadata targets of a file system: operations by kind, their rates, and MDU.

    Metadata Utilization is the share of time the server needs for the operations it did, each at the rate mdtest
    reached at saturation. Where servers count service times, these stand beside it.
    """
    return ask.analyse("metadata", **options)
