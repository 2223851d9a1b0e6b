"""Passwords and tokens: from an environment variable or a file that the configuration names, never from itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from iolens.alerts.receivers import DeliveryError

LARGEST_FILE: Final = 4096


def secret(values: dict[str, Any], name: str) -> str | None:
    """What `NAME_env` or `NAME_file` leads to, read when it is needed; None where neither is configured."""
    variable, file = values.get(f"{name}_env"), values.get(f"{name}_file")
    if variable is not None:
        if not (value := os.environ.get(variable)):
            raise DeliveryError(f"{name}_env: the environment variable {variable} is not set", is_down=True)
        return value
    return None if file is None else _first_line(Path(file), name)


def _first_line(path: Path, name: str) -> str:
    try:
        with path.open(encoding="utf-8") as stream:
            line = stream.read(LARGEST_FILE).partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "not UTF-8"
        raise DeliveryError(f"{name}_file: {path}: {problem}", is_down=True) from None
    if not line:
        raise DeliveryError(f"{name}_file: {path} is empty", is_down=True)
    return line
