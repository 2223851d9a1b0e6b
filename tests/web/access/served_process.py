"""The test application in a process of its own: `python -m tests.web.access.served_process STATE` prints its port."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from iolens.web.access import connections
from iolens.web.access.bodies import BodyBounds
from iolens.web.serve_config import ServeConfig
from tests.web.access.running_application import running

HUB = BodyBounds(4 << 20, 0.5)


def main() -> None:
    """Serve until standard input ends, with little patience."""
    connections.BoundedHttp.head_s = connections.BoundedHttp.rest_s = 0.5
    with running(Path(sys.argv[1]), ServeConfig(require_token=True, body_time_s=0.5), hub_bounds=HUB) as server:
        for role in ("viewer", "operator", "agent"):
            server.add(role, role)
        holder = server.access.tokens.holder(server.tokens["viewer"])
        assert holder is not None
        server.tokens["cookie"] = server.access.sessions.begin(holder)
        sys.stdout.write(json.dumps({"port": server.address.port, "tokens": server.tokens}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
