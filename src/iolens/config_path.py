"""Which configuration file is read: apart from what it may hold, which takes a while to import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PLACES: Final = ("iolens.toml", "/etc/iolens.toml")


def config_path(given: str | Path | None = None) -> Path | None:
    """The one that is given, else `$IOLENS_CONFIG`, else the first that exists of those places."""
    chosen = given or os.environ.get("IOLENS_CONFIG")
    if chosen:
        return Path(chosen)
    return next((Path(place) for place in PLACES if _is_there(Path(place))), None)


def _is_there(path: Path) -> bool:
    """A directory that this user may not enter, such as root's for a service, holds no configuration of theirs."""
    try:
        return path.is_file()
    except PermissionError:
        return False
