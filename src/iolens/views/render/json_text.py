"""A result as JSON: field names are the keys, in field order; undefined is null; times are ISO-8601 with Z."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from pathlib import PurePath
from typing import Any, Final

from iolens.units import iso
from iolens.visible_text import UNSEEN

_UNSEEN: Final = re.compile(f"(?!\n)[{UNSEEN}]")


def to_json(result: object, **more: object) -> str:
    """The whole result as indented JSON that ends with a newline; `warnings` has what its views warn of.

    `more` are keys beside those of the result.
    """
    from iolens.views.render.doubts import warnings

    plain = plain_value(result)
    if isinstance(plain, dict):
        plain |= plain_value(more)
        if "warnings" not in plain and (lines := warnings(result)):
            plain["warnings"] = lines
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _UNSEEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    """As JSON writes any character; what is not seen stands only inside texts, so that the text stays the same."""
    code = ord(match[0])
    pair = divmod(code - 0x10000, 0x400) if code > 0xFFFF else None
    return f"\\u{code:04x}" if pair is None else f"\\u{0xD800 + pair[0]:04x}\\u{0xDC00 + pair[1]:04x}"


def to_plain(result: object) -> dict[str, Any]:
    """A result, or a part of one, as a dictionary of plain Python values, ready for JSON."""
    if not is_dataclass(result):
        raise TypeError(f"a result is a dataclass, not {type(result).__name__}")
    plain: dict[str, Any] = plain_value(result)
    return plain


def plain_value(value: Any) -> Any:
    """One value as JSON knows it: NaN and infinity become None, NumPy becomes Python."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date):  # a datetime is a date too
        return iso(_aware(value)) if isinstance(value, datetime) else value.isoformat()
    if is_dataclass(value):
        members = (
            (field.metadata.get("key", field.name), getattr(value, field.name), field.metadata.get("json", True))
            for field in fields(value)
        )
        return {
            name: plain_value(member)
            for name, member, rule in members
            if rule is True or (rule == "present" and member is not None)
        }
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # NumPy, recognised by its manner to spare the import
        return plain_value(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
