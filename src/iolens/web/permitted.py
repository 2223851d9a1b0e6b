"""What of the answers a reader with the role `user` may see: load of file systems, and what concerns the own jobs."""

from __future__ import annotations

from iolens.errors import IolensError
from iolens.web.access.principal import LOCAL, SCOPE_KEY, Principal
from iolens.web.answers import StoredAnswer
from iolens.web.inquiry import Inquiry
from iolens.web.questions import QUESTIONS

REFUSED = "this is not there, or not for you to see"


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
    return principal.role != "user" or question.is_open_to_users


def permitted(inquiry: Inquiry, principal: Principal) -> Inquiry:
    """The inquiry as the reader may ask it: a `user` asks for the own jobs, and for no names of others."""
    if not may_ask(inquiry.name, principal):
        raise NotPermittedError(REFUSED)
    if principal.role != "user":
        return inquiry
    if principal.user is None:
        raise NotPermittedError(REFUSED)
    own = {inquiry.question.own: principal.user} if inquiry.question.own else {}
    return inquiry.but(**own, names=None)


def check_owner(answer: StoredAnswer, principal: Principal) -> None:
    """Refuse what is of one person to another `user`."""
    owner = answer.inquiry.question.owner
    if principal.role == "user" and owner is not None and owner(answer.result) != principal.user:
        raise NotPermittedError(REFUSED)
