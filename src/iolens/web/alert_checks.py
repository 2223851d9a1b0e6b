"""Checks of alerts while the server runs, and what the log says of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from iolens.api.alerts import check_alerts
from iolens.errors import IolensError
from iolens.messages import TroubleLog, cause, say
from iolens.web.answers import Answers

TROUBLE: Final = ("alerts",)


async def check_regularly(answers: Answers, state: Path, every_s: float) -> None:
    """Check again and again until it is cancelled; pages hear of what changes."""
    troubles = TroubleLog(say)
    while True:
        try:
            checked = await answers.run_beside(lambda opened: check_alerts(opened, state))
        except (IolensError, OSError) as error:
            troubles.tell(TROUBLE, f"alerts are not checked: {cause(str(error))}; tried again in {every_s:g} s")
        else:
            troubles.over(TROUBLE, "alerts are checked again")
            if checked.fired or checked.resolved:
                answers.touch()
        await asyncio.sleep(every_s)
