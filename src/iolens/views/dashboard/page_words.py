"""Options of the command line in sentences, in the words of a page: the field that has the same meaning."""

from __future__ import annotations

import re
from typing import Final

FIELDS: Final = {
    "--from": "From", "--to": "To", "--ssi": "Speed over the old system (SSI)", "--purge-days": "Files may go after",
    "--purge-fraction": "A purge reclaims", "--daily-growth": "Growth", "--dom": "Data-on-MDT up to",
    "--classes": "Class of the drives", "--layout": "Stripe of drives, data + parity", "--waf": "Write amplification",
    "--fswpd": "File-system writes per day", "--capacity": "Capacity that MDTs serve",
    "--smaller": "A system smaller than what is used today is meant",
}  # fmt: skip
"""Labels of the controls of pages by the option that sets the same."""
_OPTION: Final = re.compile(
    r"(?<=\()(?P<whole>--[a-z][a-z-]*[a-z]) (?P<value>\S+)(?=\))|(?<![^\s(;,])--[a-z][a-z-]*[a-z](?![\w=-])"
)


def in_page_words(text: str) -> str:
    """The sentence with fields for options; where no page has such a field, the command below the block has it."""
    return _OPTION.sub(lambda match: _named(match["whole"] or match[0], match["value"]), text)


def _named(option: str, value: str | None) -> str:
    """An option that stands in brackets alone has its value with it."""
    after = "" if value is None else f" {value}"
    return f"“{FIELDS[option]}”{after}" if option in FIELDS else f"the option {option}{after} of the command"
