"""The questions that the server answers: all that are declared, and those about its own pages.

A question stands at `/api/v1/NAME` (JSON), `/api/v1/NAME.csv` and `/blocks/NAME` (HTML); pages are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from iolens.question import STAFF, SWITCH, About, Means, Option, Question, Rights
from iolens.questions import all_questions
from iolens.web.parameters import FILESYSTEM, ONLY, RESOLUTION, TIMEZONE, WINDOW, UrlParameter, by_name

if TYPE_CHECKING:
    from iolens.questions.asking import Ask

SHARED: Final[Mapping[About, tuple[UrlParameter, ...]]] = {
    "rows": (FILESYSTEM, *WINDOW, *ONLY, RESOLUTION, TIMEZONE),
    "raw": (FILESYSTEM, *WINDOW, *ONLY, TIMEZONE),
    "jobs": (FILESYSTEM, *WINDOW, TIMEZONE),
    "runs": (*WINDOW, TIMEZONE),
    "times": (*WINDOW, TIMEZONE),
    "store": (),
}
STATE_LASTS_S: Final = 2.0  # what is not in the store changes at any time


@dataclass(frozen=True, slots=True)
class ServedQuestion:
    """A question that the server answers, with its parameters in a URL.

    `command` are the words after `iolens` that ask the same. `about` says which parameters it shares with others.
    """

    name: str
    summary: str
    command: tuple[str, ...]
    ask: Callable[[Ask, dict[str, Any]], Any]
    parameters: tuple[UrlParameter, ...] = ()
    rights: Rights = STAFF
    about: About = "rows"
    has_figures: bool = True
    lasts_s: float = math.inf  # how long an answer holds while the store is unchanged
    known: Mapping[str, UrlParameter] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", by_name((*SHARED[self.about], *self.parameters)))
        self.rights.check(self.name, {item.means for item in self.known.values()})

    @classmethod
    def of(cls, question: Question) -> ServedQuestion:
        """A declared question; what it publishes is what others may see of its answer."""

        def ask(asking: Ask, options: dict[str, Any]) -> Any:
            result = question.answer(asking, **question.keywords(options))
            return result if question.published is None else question.published(result)

        parameters = tuple(UrlParameter.of(option) for option in question.options if option.is_at_url)
        return cls(
            question.address, question.summary, tuple(question.words.split()), ask, parameters, question.rights,
            question.about, question.has_figures, question.lasts_s,
        )  # fmt: skip

    def of_one(self, user: str, given: Container[str]) -> dict[str, str | None]:
        """Values that a `user` asks with: whoever a parameter names is they, and no names of others are added."""
        persons = {name: user for name in self._named("person") if self.rights.own or name in given}
        return {**persons, **dict.fromkeys(self._named("others"), None)}

    def _named(self, means: Means) -> list[str]:
        return [item.name for item in self.known.values() if item.means == means]


def _job(ask: Ask, options: dict[str, Any]) -> Any:
    from iolens.api.job_page import JobPageOptions, job_page

    chosen = JobPageOptions(cluster=options.get("cluster"), names=options.get("names", False))
    return job_page(ask.store, options["id"], ask.scope, chosen)


def _user(ask: Ask, options: dict[str, Any]) -> Any:
    from iolens.api.user_page import user_page

    return user_page(ask.store, options["name"], ask.scope, timezone=ask.timezone)


def _alerts(ask: Ask, options: dict[str, Any]) -> Any:
    from iolens.api.alerts import alert_list

    return alert_list(ask.store.config, ask.store.config.state_path(), **options)


def _agents(ask: Ask, options: dict[str, Any]) -> Any:
    from datetime import UTC, datetime

    from iolens.hub.hub_state import hub_state

    return hub_state(ask.store.config.state_path(), datetime.now(UTC))


_PAGES: Final = (
    ServedQuestion("job", "The page of one job", ("report",), _job, tuple(map(UrlParameter.of, (
        Option("id", "Id of the job, or of a run", flag="--job", in_url="id", is_needed=True, means="job"),
        Option("cluster", "Cluster of the job, where several have such an id"),
        Option("names", "1: name users and programs of its neighbours", SWITCH, means="others"),
    ))), Rights(owner=lambda page: page.user), "runs", has_figures=False),
    ServedQuestion("user", "The page of one user", ("report",), _user, (
        UrlParameter.of(Option("name", "Login name", flag="--user", in_url="name", is_needed=True, means="person")),
    ), Rights(owner=lambda page: page.user, owner_in="name"), "runs", has_figures=False),
    ServedQuestion("alerts", "Alerts now and of the last day, silences, what was not delivered", ("alerts", "list"),
                   _alerts, (UrlParameter("filesystem", "Only alerts of this file system", flag="-f"),), about="store",
                   has_figures=False, lasts_s=STATE_LASTS_S),
    ServedQuestion("agents", "Agents that push to this server, and the writer", (), _agents, about="store",
                   has_figures=False, lasts_s=STATE_LASTS_S),
)  # fmt: skip
QUESTIONS: Final[Mapping[str, ServedQuestion]] = {
    served.name: served
    for served in (*(ServedQuestion.of(question) for question in all_questions() if question.address), *_PAGES)
}
