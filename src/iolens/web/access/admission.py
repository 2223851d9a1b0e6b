"""Whether a request is admitted: who asks, whether the role may do that, and whether the browser was led to ask."""

from __future__ import annotations

from urllib.parse import quote

from iolens.web.access.access import Access
from iolens.web.access.bodies import BodyBounds, check_length
from iolens.web.access.http_request import HttpRequest
from iolens.web.access.identity import CHALLENGE, NO_TOKEN, Client, Identity, identity_of
from iolens.web.access.origins import check_not_embedded, check_same_origin
from iolens.web.access.permissions import API, READERS, Permission, permission_of
from iolens.web.access.refusals import Header, Refusal, second_look


class TokenNeeded(Refusal):
    """Nobody in particular asks for a page that needs a token."""

    def __init__(self) -> None:
        super().__init__(401, NO_TOKEN, CHALLENGE)


def identified(request: HttpRequest, client: Client, access: Access) -> Identity:
    """Who asks. Public pages do not look at tokens and cookies."""
    row = permission_of(request.path)
    if row is not None and row.is_public:
        return Identity(None, is_ambient=True)
    identity = identity_of(request, client, access)
    if identity.principal is None:
        raise TokenNeeded
    return identity


def admit(request: HttpRequest, identity: Identity, client: Client, access: Access) -> BodyBounds:
    """What the body of an admitted request may have; a Refusal for any other."""
    _check_permission(permission_of(request.path), request, identity)
    if identity.is_ambient and request.is_safe:
        check_not_embedded(request)
    elif identity.is_ambient:
        check_same_origin(request, is_secure=client.is_secure)
    bounds = access.bounds_of(request.path)
    check_length(request.header("content-length"), bounds)
    return bounds


def log_in_answer(request: HttpRequest) -> tuple[int, list[Header], bytes] | None:
    """What leads a person with a browser to the log-in: status, headers, body. None: a program asks."""
    if not request.wants_page or request.path.startswith(API):
        return None
    if request.header("sec-fetch-site") == "cross-site" and request.header("sec-fetch-mode") == "navigate":
        return 200, *second_look(request.target)
    location = f"/login?next={quote(request.target, safe='')}".encode()
    return 303, [(b"location", location), (b"content-length", b"0")], b""


def _check_permission(row: Permission | None, request: HttpRequest, identity: Identity) -> None:
    """Those who may see everything hear that there is nothing; others hear no difference."""
    role = None if identity.principal is None else identity.principal.role
    methods = () if row is None else row.methods_of(role)
    if request.method in methods:
        return
    if methods:
        raise Refusal(405, "This method does nothing here.", ("Allow", ", ".join(methods)))
    if row is None and role in READERS:
        raise Refusal(404, "There is no such page.")
    raise Refusal(403, "This role may not do that.")
