"""Who asks the server, and what that role may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["viewer", "user", "operator", "agent"]
ROLES: Final[tuple[Role, ...]] = ("viewer", "user", "operator", "agent")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a name for the audit log, and a role.

    A `viewer` sees all pages, an `operator` may also silence alerts, a `user` sees the jobs of the login name `user`
    only, an `agent` sends samples and sees nothing.
    """

    name: str
    role: Role
    user: str | None = None


LOCAL: Final = Principal("local", "operator")  # whoever asks from this machine while no token is needed
SCOPE_KEY: Final = "iolens.principal"  # where requests carry it: `request.scope[SCOPE_KEY]`
