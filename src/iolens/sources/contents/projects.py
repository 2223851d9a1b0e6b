"""Which project an inode belongs to: by the directory it is in, or by the project id its file system keeps."""

from __future__ import annotations

import re
from typing import Final

from iolens.config import ProjectRule

NO_PROJECT_ID: Final = 0  # what file systems say for "none"


class Projects:
    """A rule, ready to be asked many times."""

    def __init__(self, rule: ProjectRule) -> None:
        self._directories = [re.compile(_expression(directory), re.DOTALL) for directory in rule.directories]
        self._ids = rule.ids

    @property
    def has_directories(self) -> bool:
        """Whether a path can tell a project at all."""
        return bool(self._directories)

    def of_path(self, path: str) -> str | None:
        """The project of an absolute path: of the directory that a rule names, and of everything below it."""
        for directory in self._directories:
            if match := directory.match(path):
                return match["project"]
        return None

    def of_id(self, project_id: int | str | None) -> str | None:
        """The project of an id; its number where the configuration has no name for it."""
        if project_id is None or str(project_id) == str(NO_PROJECT_ID):
            return None
        return self._ids.get(str(project_id), str(project_id))


def _expression(directory: str) -> str:
    pieces = {"{project}": r"(?P<project>[^/]+)", "*": r"[^/]+"}
    parts = re.split(r"(\{project\}|\*)", directory)
    return "".join(pieces.get(part, re.escape(part)) for part in parts) + r"(?:/|\Z)"
