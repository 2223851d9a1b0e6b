"""Numbers of instances: PCP's archives know an instance by its number, so it must be the same after every restart.

A number is computed from the name and nothing is kept on disk: a list of all jobs ever seen would grow for years.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

LARGEST: Final = 0x7FFFFFFF
MOST_REMEMBERED: Final = 100_000


@dataclass
class InstanceNumbers:
    """The numbers of one instance domain. Of two names with one number, which is rare, one takes the next."""

    _by_name: dict[str, int] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)

    def of(self, name: str) -> int:
        """The number of an instance."""
        if name not in self._by_name:
            number = zlib.crc32(name.encode()) & LARGEST
            while number in self._taken:
                number = (number + 1) & LARGEST
            self._by_name[name] = number
            self._taken.add(number)
        return self._by_name[name]

    def forget_all_but(self, present: Collection[str]) -> None:
        """Forget the numbers of jobs that are gone, once there are very many."""
        if len(self._by_name) > MOST_REMEMBERED:
            self._by_name = {name: number for name, number in self._by_name.items() if name in present}
            self._taken = set(self._by_name.values())
