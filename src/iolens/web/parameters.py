"""Parameters of a question: how they are written in a URL and on the command line, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from iolens.errors import UsageError
from iolens.question import TEXT, WORDS, ZONE, Means, Option, choice, quantity
from iolens.times import utc_period, utc_time
from iolens.units import iso, parse_duration

if TYPE_CHECKING:
    from iolens.store.scope import Scope

AUTO: Final = "auto"  # the resolution that fits the length of the window
RESOLUTIONS: Final = ("raw", "60s", "1h", AUTO)
LONGEST_VALUE: Final = 500  # characters


@dataclass(frozen=True, slots=True)
class UrlParameter:
    """One parameter: its name in a URL, its keyword in Python, its option on the command line.

    `parse` takes text and the zone of times in it; its ValueError says what would be right. An option without value is
    a switch (`metadata=1`); an argument stands on the command line without an option. `means` is that of the option of
    a question.
    """

    name: str
    meaning: str
    parse: Callable[[str, str | None], Any] = TEXT.read
    keyword: str = ""
    flag: str = ""
    is_switch: bool = False
    is_argument: bool = False
    is_needed: bool = False
    means: Means = ""

    @classmethod
    def of(cls, option: Option) -> UrlParameter:
        """An option of a question."""
        return cls(
            option.url_name, option.meaning, option.at_a_url, option.name, option.option, option.is_switch,
            option.is_argument, option.is_needed, option.means,
        )  # fmt: skip

    @property
    def in_python(self) -> str:
        """The keyword argument."""
        return self.keyword or self.name

    def read(self, text: str, zone: str | None = None) -> Any:
        """What the text of a URL means, or an error that names the parameter."""
        if len(text) > LONGEST_VALUE:
            raise UsageError(f"{self.name}: {len(text):,} characters; at most {LONGEST_VALUE}")
        try:
            return self.parse(text, zone)
        except ValueError as error:
            raise UsageError(f"{self.name}: {error}") from None

    def words(self, text: str) -> list[str]:
        """The same on the command line."""
        if self.is_switch:
            return [self._option] if self.read(text) else []
        return [text] if self.is_argument else [self._option, text]

    @property
    def _option(self) -> str:
        return self.flag or f"--{self.name.replace('_', '-')}"


FILESYSTEM: Final = UrlParameter("filesystem", "File system; not needed if the store has only one", flag="-f")
WINDOW: Final = (  # in UTC, whatever the zone
    UrlParameter("from", "Start of the window: a time such as 2026-01-05T19:00 (UTC)", quantity("time", utc_time).read),
    UrlParameter("to", "End of the window, not included", quantity("time", utc_time).read),
    UrlParameter(
        "during", "A whole day, week or month as the window, such as 2026-01-05", quantity("period", utc_period).read
    ),
    UrlParameter(
        "last", "The last part of the data, such as 1h, 7d or all, as the window", lambda text, _: last_s(text)
    ),
)
ONLY: Final = (
    UrlParameter("target", "Only these targets, comma-separated", WORDS.read),
    UrlParameter("source", "Only rows of this source"),
)
RESOLUTION: Final = UrlParameter(
    "resolution", f"{', '.join(RESOLUTIONS)}: rows or a rollup [raw]", choice(*RESOLUTIONS).read
)
TIMEZONE: Final = UrlParameter(
    "timezone", "Zone of days, of times shown, and of those of its own options, such as Europe/Berlin", ZONE.read
)


def last_s(text: str) -> float | None:
    """Seconds of the last part of the data; None: all of it."""
    return None if text == "all" else parse_duration(text)


def scope_words(scope: Scope) -> list[str]:
    """The options that narrow a command to the scope."""
    given = {
        "-f": scope.filesystem,
        "--target": ",".join(scope.targets),
        "--source": scope.source,
        "--from": iso(scope.since) if scope.since else None,
        "--to": iso(scope.until) if scope.until else None,
        "--resolution": scope.resolution,
    }
    return [word for option, text in given.items() if text for word in (option, text)]


def by_name(parameters: tuple[UrlParameter, ...]) -> Mapping[str, UrlParameter]:
    """The parameters by their names in a URL."""
    return {parameter.name: parameter for parameter in parameters}
