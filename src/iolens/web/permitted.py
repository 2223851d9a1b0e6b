"""What of the answers a reader with the role `user` may see: load of file systems, and what concerns the own jobs."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import Final

from iolens.analyses.runs.asked import UNKNOWN
from iolens.errors import IolensError, StoreError
from iolens.question import words_of
from iolens.web.access.principal import LOCAL, SCOPE_KEY, Principal
from iolens.web.answers import StoredAnswer, TooManyInquiriesError
from iolens.web.inquiry import Inquiry
from iolens.web.questions import QUESTIONS

REFUSED: Final = "this is not there, or not for you to see"
AT_ANY_TIME: Final = (StoreError, TooManyInquiriesError)  # they say nothing of what there is


class NotPermittedError(IolensError):
    """The reader may not see this; what it is, and whether it is there, is not said."""


def principal_of(scope: dict[str, object] | object) -> Principal:
    """Who asks, as the door in front of the application noted it."""
    known = scope.get(SCOPE_KEY, LOCAL) if isinstance(scope, dict) else LOCAL
    assert isinstance(known, Principal)
    return known


def may_ask(name: str, principal: Principal) -> bool:
    """Whether the role may ask this question at all."""
    question = QUESTIONS.get(name)
    if question is None or principal.role == "agent":
        return False
    return principal.role != "user" or question.rights.is_open_to_users


def permitted(inquiry: Inquiry, principal: Principal) -> Inquiry:
    """The inquiry as the reader may ask it: a `user` asks for the own jobs, and for no names of others."""
    if not may_ask(inquiry.name, principal):
        raise NotPermittedError(REFUSED)
    if principal.role != "user":
        return inquiry
    if principal.user is None or not _is_one_name(principal.user):
        raise NotPermittedError(REFUSED)
    named = inquiry.question.rights.owner_in
    if named and inquiry.value(named) != principal.user:
        raise NotPermittedError(REFUSED)
    return inquiry.but(**inquiry.question.of_one(principal.user, dict(inquiry.values)))


def _is_one_name(user: str) -> bool:
    """Whether a condition on users means this one alone: not a list, a pattern, or what stands for nobody known."""
    return words_of(user) == (user,) and not set(user) & set("*?") and user != UNKNOWN


def seen_by(answer: StoredAnswer, principal: Principal) -> StoredAnswer:
    """The answer as the reader may see it: a `user` what is of one person if it is their own, without other names."""
    rights = answer.inquiry.question.rights
    if principal.role != "user" or rights.owner is None:
        return answer
    if rights.owner(answer.result) != principal.user:
        raise NotPermittedError(REFUSED)
    if rights.without_others is None:
        return answer
    return replace(answer, result=rights.without_others(answer.result), _forms={}, _lock=Lock())


def heard_by(error: IolensError, inquiry: Inquiry, principal: Principal) -> IolensError:
    """The error as the reader may hear it: what is not there sounds to a `user` like what is not their own."""
    if principal.role != "user" or inquiry.question.rights.owner is None or isinstance(error, AT_ANY_TIME):
        return error
    return NotPermittedError(REFUSED)
