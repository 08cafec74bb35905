"""Options of a connection, addresses and names."""

from __future__ import annotations

import os
import random
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from telpher import _core as core
from telpher import _wire as wire
from telpher._errors import InvalidArgument, Retry, TelpherError

DEFAULT_ADDRESS = "tcp://127.0.0.1:7400"
DEFAULT_PORT = 7400
HANDSHAKE_TIMEOUT = 5.0
_PART = re.compile(r"[A-Za-z0-9._:-]{1,128}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a node listens."""

    scheme: Literal["tcp", "tls", "unix"]
    host: str
    port: int = 0

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix://{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Returns the address in `tcp://HOST:PORT`, `tls://…`, `unix:///PATH` or `HOST:PORT`."""
    url = text.strip()
    if "://" not in url:
        url = f"tcp://{url}"
    parts = urlsplit(url)
    wrong = InvalidArgument(
        f"{text!r} is no address", hint="use tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH"
    )
    if parts.scheme == "unix" and parts.path:
        return Address("unix", parts.netloc + parts.path)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname:
        raise wrong
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise wrong from None
    return Address("tls" if parts.scheme == "tls" else "tcp", parts.hostname, port)


def parse_addresses(given: str | Sequence[str] | None) -> list[Address]:
    """Returns the addresses of a node, or of the nodes of a cluster."""
    if given is None:
        given = os.environ.get("TELPHER_URL", DEFAULT_ADDRESS)
    texts = given.split(",") if isinstance(given, str) else list(given)
    if not texts:
        raise InvalidArgument("no address is given")
    return [parse_address(text) for text in texts]


def check_name(name: str) -> str:
    """Returns the full name for `org/namespace/agent` or a name of one part."""
    parts = name.split("/")
    if len(parts) == 1 and _PART.fullmatch(name):
        return f"default/default/{name}"
    if len(parts) in (3, 4) and all(_PART.fullmatch(part) for part in parts):
        return name
    raise InvalidArgument(
        f"{name!r} is no name",
        hint="a name is org/namespace/agent, or one part: letters, digits and . _ : - in each part",
    )


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a failed call is repeated, within its `timeout`.

    Only calls that were certainly not executed are repeated (`retry == "safe"`). With `idempotent`
    calls that may have been executed are repeated too. Each pause is random between zero and a
    limit that doubles from `pause_min` to `pause_max` (full jitter), and at least as long as the
    node asked for.
    """

    attempts: int = 3
    idempotent: bool = False
    pause_min: float = 0.01
    pause_max: float = 1.0

    def pause(self, error: TelpherError, made: int) -> float | None:
        """Returns the pause before the next attempt, or None if `made` attempts were enough."""
        may = error.retry is Retry.SAFE or (self.idempotent and error.retry is Retry.IF_IDEMPOTENT)
        if not may or made >= self.attempts:
            return None
        pause = full_jitter(self.pause_min, self.pause_max, made - 1)
        return max(pause, error.retry_after or 0.0)


READ_RETRY = RetryPolicy(attempts=5, idempotent=True)
"""How a read is repeated: reading twice does no harm."""

WRITE_RETRY = RetryPolicy(attempts=5, idempotent=True)
"""How a write with an id is repeated by default; its id makes that safe."""

MOVED = RetryPolicy(attempts=12, pause_min=0.02, pause_max=1.0)
"""How an answer `moved` of a cluster is repeated, at each of the addresses in turn."""


def full_jitter(pause_min: float, pause_max: float, attempt: int) -> float:
    """Returns a random pause below `pause_min * 2**attempt`, and below `pause_max`."""
    return random.random() * min(pause_min * (1 << min(attempt, 20)), pause_max)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a connection; see `telpher.connect`."""

    addresses: tuple[Address, ...]
    token: str = ""
    name: str = ""
    timeout: float | None = 10.0
    in_flight_max: int = 16_384
    requests_max: int = 1_024
    frame_size_max: int = core.FRAME_SIZE_MAX
    credit_messages: int = 16_384
    credit_bytes: int = 16 << 20
    keepalive: float = 15.0
    connect_timeout: float = HANDSHAKE_TIMEOUT
    reconnect: tuple[float, float] = (0.05, 5.0)
    tls: ssl.SSLContext | str | None = None

    def window(self, keepalive: float) -> wire.Window:
        return wire.Window(
            self.frame_size_max,
            self.requests_max,
            self.credit_messages,
            max(self.credit_bytes, 2 * self.frame_size_max),
            int(keepalive * 1000),
        )

    def ssl_context(self, address: Address) -> ssl.SSLContext | None:
        if address.scheme != "tls":
            return None
        if isinstance(self.tls, ssl.SSLContext):
            return self.tls
        authorities = self.tls or os.environ.get("TELPHER_TLS_AUTHORITIES")
        return ssl.create_default_context(cafile=authorities)


def make_options(
    address: str | Sequence[str] | None,
    *,
    name: str | None,
    token: str | None,
    timeout: float | None,
    in_flight_max: int,
    requests_max: int,
    frame_size_max: int,
    keepalive: float,
    connect_timeout: float,
    reconnect: tuple[float, float],
    tls: ssl.SSLContext | str | None,
) -> Options:
    """Checks the arguments of `connect`."""
    if in_flight_max < 1 or requests_max < 0:
        raise InvalidArgument("in_flight_max must be at least 1, and requests_max at least 0")
    if not 1024 <= frame_size_max <= core.FRAME_SIZE_CEILING:
        raise InvalidArgument(
            f"frame_size_max is {frame_size_max} (1,024 to {core.FRAME_SIZE_CEILING})"
        )
    return Options(
        addresses=tuple(parse_addresses(address)),
        token=os.environ.get("TELPHER_TOKEN", "") if token is None else token,
        name=check_name(name) if name else os.environ.get("TELPHER_NAME", ""),
        timeout=timeout,
        in_flight_max=in_flight_max,
        requests_max=requests_max,
        frame_size_max=frame_size_max,
        keepalive=keepalive,
        connect_timeout=connect_timeout,
        reconnect=reconnect,
        tls=tls,
    )
