"""The command that starts the tasks of an MPI program: the one the user names, or the first launcher on PATH."""

from __future__ import annotations

import shlex
import shutil
from typing import Final

from iolens.errors import UsageError

LAUNCHERS: Final = {"mpirun": "-np", "mpiexec": "-n", "srun": "-n"}


def launcher_words(given: str | None, tasks: int, tasks_option: str = "one task") -> list[str]:
    """The words before the program; `{tasks}` of a given command is their number, and a single task needs none.

    `tasks_option` is how the user asks for a single task.
    """
    if given is not None:
        return _words(given, tasks)
    for name, option in LAUNCHERS.items():
        if (path := shutil.which(name)) is not None:
            return [path, option, str(tasks)]
    if tasks == 1:
        return []
    known = ", ".join(LAUNCHERS)
    raise UsageError(f"no MPI launcher ({known}) is on PATH: name one with --launcher, or use {tasks_option}")


def _words(given: str, tasks: int) -> list[str]:
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise UsageError(f"--launcher {given!r}: {error}") from None
    return [word.replace("{tasks}", str(tasks)) for word in words]
