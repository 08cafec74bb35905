# Made by tools/make_sync.py from telpher/_async/_repeat.py: do not edit.
"""Repetition of requests: at another node of a cluster, or as a policy allows."""

from __future__ import annotations

from telpher import _errors as errors
from telpher._blocking.link import Link
from telpher._core import Route
from telpher._options import MOVED, RetryPolicy
from telpher._scope import limit


def call(
    link: Link,
    kind: int,
    route: Route | None,
    body: bytes,
    timeout: float | None,
    retry: RetryPolicy | None = None,
) -> bytes:
    """Sends a request; repeats it at the other nodes while the answer is `moved`, and as `retry`
    allows. Requests without a route concern the node that is asked."""
    timeout = limit(link.options.timeout if timeout is None else timeout)
    until = None if timeout is None else link.now() + timeout
    made = 0
    while True:
        try:
            if route is None:
                return link.call_plain(kind, body, timeout)
            leader = link.leader(route)
            return leader.call(kind, 0, route, body, timeout)
        except errors.TelpherError as error:
            made += 1
            is_moved = isinstance(error, errors.Moved)
            policy = MOVED if is_moved else retry
            pause = None if policy is None else policy.pause(error, made)
            left = None if until is None else until - link.now()
            if pause is None or (left is not None and left <= pause):
                raise
            if is_moved and route is not None:
                link.look_elsewhere(route)
            link.sleep(pause)
            timeout = None if until is None else max(0.0, until - link.now())
