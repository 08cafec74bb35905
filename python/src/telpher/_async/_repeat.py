"""Repetition of requests: at another node of a cluster, or as a policy allows."""

from __future__ import annotations

from telpher import _errors as errors
from telpher._asyncio.link import Link
from telpher._core import Route
from telpher._options import MOVED, RetryPolicy
from telpher._scope import limit


async def call(
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
                return await link.call_plain(kind, body, timeout)
            leader = await link.leader(route)
            return await leader.call(kind, 0, route, body, timeout)
        except errors.TelpherError as error:
            made += 1
            is_moved = isinstance(error, errors.Moved)
            policy = MOVED if is_moved else retry
            pause = None if policy is None else policy.pause(error, made)
            left = None if until is None else until - link.now()
            if pause is None or (left is not None and left <= pause):
                raise
            if is_moved and route is not None:
                await link.look_elsewhere(route)
            await link.sleep(pause)
            timeout = None if until is None else max(0.0, until - link.now())
