"""What each role may ask for: one table of paths and methods. What is not in it is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from iolens.web.access.principal import Principal, Role
from iolens.web.questions import QUESTIONS

Roles = frozenset[Role]

READERS: Final[Roles] = frozenset({"viewer", "operator"})
PEOPLE: Final[Roles] = READERS | {"user"}
OPERATORS: Final[Roles] = frozenset({"operator"})
AGENTS: Final[Roles] = frozenset({"agent"})
EVERYBODY: Final[Roles] = frozenset()  # also without a token
HUB: Final = "/api/v1/hub/"
API: Final = "/api/"


@dataclass(frozen=True)
class Permission:
    """A pattern of paths and the roles that may use each method: `{…}` is one name, a last `**` is anything below."""

    pattern: str
    roles: Mapping[str, Roles]

    def covers(self, path: str) -> bool:
        """Whether the path is one of the pattern's."""
        names = path.split("/")
        is_open = self._names[-1] == "**"
        fixed = self._names[:-1] if is_open else self._names
        if len(names) < len(fixed) + is_open or (not is_open and len(names) > len(fixed)):
            return False
        return all(name == known or (known[:1] == "{" and name) for name, known in zip(names, fixed, strict=False))

    @cached_property
    def _names(self) -> list[str]:
        return self.pattern.split("/")

    @property
    def is_public(self) -> bool:
        """Whether the page needs no token."""
        return EVERYBODY in self.roles.values()

    def methods_of(self, role: Role | None) -> tuple[str, ...]:
        """Methods that the role may use."""
        return tuple(method for method, roles in self.roles.items() if not roles or role in roles)


def _get(roles: Roles, *patterns: str) -> Iterable[Permission]:
    return (Permission(pattern, {"GET": roles, "HEAD": roles}) for pattern in patterns)


def _questions() -> Iterable[Permission]:
    """Answers as JSON, CSV, figure and block of a page, for those who may ask the question."""
    for question in QUESTIONS.values():
        path = f"/api/v1/{question.name}"
        roles = PEOPLE if question.rights.is_open_to_users else READERS
        yield from _get(roles, path, f"{path}.csv", f"{path}/figures/{{figure}}", f"/blocks/{question.name}")


# The first pattern that covers a path decides. A `user` sees the load of file systems and their own jobs, to which the
# pages themselves narrow; nothing that names other people.
PERMISSIONS: Final[tuple[Permission, ...]] = (
    *_get(EVERYBODY, "/healthz", "/static/**", "/favicon.ico"),
    Permission("/login", dict.fromkeys(("GET", "HEAD", "POST"), EVERYBODY)),
    Permission("/logout", {"POST": EVERYBODY}),
    *_get(PEOPLE, "/", "/filesystems/{name}", "/users/{name}", "/jobs", "/jobs/{id}", "/jobs/{id}/**", "/applications"),
    *_get(READERS, "/filesystems/{name}/**", "/users", "/users/**", "/data", "/alerts", "/alerts/{id}"),
    Permission("/api/v1/hub/**", dict.fromkeys(("GET", "HEAD", "POST", "PUT", "PATCH"), AGENTS)),
    Permission("/api/v1/silences", {"GET": READERS, "HEAD": READERS, "POST": OPERATORS}),
    Permission("/api/v1/silences/{id}", {"GET": READERS, "HEAD": READERS, "DELETE": OPERATORS}),
    *_get(PEOPLE, "/api/v1/changes", "/api/v1/openapi.json"),
    *_questions(),
    *_get(READERS, "/api/v1/plan/rationale.pdf"),
)


def permission_of(path: str) -> Permission | None:
    """The row that decides on a path; None: nobody may ask for it."""
    return next((row for row in PERMISSIONS if row.covers(path)), None)


def may(principal: Principal | None, method: str, path: str) -> bool:
    """Whether somebody may use a method on a path; None: nobody in particular."""
    row = permission_of(path)
    return row is not None and method in row.methods_of(None if principal is None else principal.role)
