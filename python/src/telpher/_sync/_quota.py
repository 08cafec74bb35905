# Made by tools/make_sync.py from telpher/_async/_quota.py: do not edit.
"""Quotas: take, hold and settle, peek, usage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from types import TracebackType
from uuid import uuid4

from telpher import _errors as errors
from telpher import _types as types
from telpher import _wire as wire
from telpher._sync._http import Http, query
from telpher._sync._repeat import call
from telpher._blocking.link import Link
from telpher._options import READ_RETRY, WRITE_RETRY, RetryPolicy


class Quota:
    """Takes from quotas, as `Client.quota`.

    ```
    node.quota.take("acme/research/bot", requests=1)         # QuotaDenied if a limit says no
    with node.quota.hold("acme/research/bot", tokens=1800) as hold:
        answer = model(...)
        hold.cost(tokens=answer.tokens)                              # the true cost
    ```
    """

    def __init__(self, link: Link, http: Http) -> None:
        self._link = link
        self._http = http

    def take(
        self,
        subject: str,
        cost: Mapping[str, int] | None = None,
        *,
        id: str | None = None,
        wait: float | None = None,
        priority: int = 0,
        timeout: float | None = None,
        **units: int,
    ) -> types.Taken:
        """Takes a cost from every limit that covers the subject, or from none.

        Give the cost by keywords (`requests=1, tokens=500`) or as a mapping. `subject` is
        `org/namespace/agent`, with `?run=…` after it for a run. `wait` is for how many seconds the
        take may wait until it passes, `id` makes a repetition safe. Raises `QuotaDenied`.
        """
        return self._take(subject, _cost(cost, units), None, id, wait, priority, timeout)

    def hold(
        self,
        subject: str,
        cost: Mapping[str, int] | None = None,
        *,
        seconds: float = 60.0,
        wait: float | None = None,
        priority: int = 0,
        timeout: float | None = None,
        **units: int,
    ) -> Hold:
        """Reserves a cost, as a context manager; see `Hold`. It ends after `seconds` by itself, at
        the price of what was reserved."""
        return Hold(self, subject, _cost(cost, units), seconds, wait, priority, timeout)

    def peek(self, subject: str, *, timeout: float | None = None) -> types.Taken:
        """Returns the state of the limits of a subject, and takes nothing."""
        payload = self._ask(wire.PEEK, wire.text16(subject), timeout, READ_RETRY)
        (outcome,) = wire.outcomes(payload)
        return _taken(outcome)

    def usage(
        self,
        first: date | str | None = None,
        last: date | str | None = None,
        *,
        by: types.UsageBy = "day",
        limit: str | None = None,
        subject: str | None = None,
    ) -> Iterator[types.UsageRow]:
        """Yields what subjects have spent from day `first` to day `last` (UTC, both included).

        ```
        for row in node.quota.usage("2026-11-01", "2026-11-30", by="subject"):
            print(row.subject, row.limit, row.amount, row.unit)
        ```

        Without days it is the last 30 days; the node keeps 90. A row is about a day, a limit and a
        subject; with `by="subject"` and `by="limit"` it is the sum of all days, or of all days and
        subjects. `limit` selects one limit, and `subject` a pattern such as `acme/*/*`. A client
        sees the subjects that its token may use. A hold counts when it ends, with its true cost.
        """
        params = query(by=by, limit=limit, subject=subject, count=1000)
        params |= query(**{"from": first, "to": last})
        while True:
            page = self._http.ask("GET", "/v1/usage", params=params)
            for row in page["rows"]:
                yield types.usage_row(row)
            if not page.get("next"):
                return
            # A day that begins meanwhile does not move the period.
            params |= {"from": page["from"], "to": page["to"], "after": page["next"]}

    def _take(
        self,
        subject: str,
        units: Mapping[str, int],
        hold: float | None,
        id: str | None,
        wait: float | None,
        priority: int,
        timeout: float | None,
    ) -> types.Taken:
        take = wire.take(
            subject,
            units,
            hold_ms=None if hold is None else max(1, int(hold * 1000)),
            wait_ms=None if wait is None else max(0, int(wait * 1000)),
            priority=priority,
            id=id,
        )
        if timeout is None and wait is not None and self._link.options.timeout is not None:
            timeout = self._link.options.timeout + wait
        # With an id a repetition takes nothing more.
        payload = self._ask(wire.TAKE, take, timeout, WRITE_RETRY if id else None)
        (outcome,) = wire.outcomes(payload)
        return _taken(outcome)

    def _settle(self, hold: int, units: Mapping[str, int] | None) -> bool:
        # A hold that a first attempt has ended stays as it was settled.
        payload = self._ask(wire.SETTLE, wire.settle(hold, units), None, WRITE_RETRY)
        return payload == b"\x01"

    def _ask(
        self, kind: int, body: bytes, timeout: float | None, retry: RetryPolicy | None
    ) -> bytes:
        return call(self._link, kind, None, body, timeout, retry)


class Hold:
    """A reserved cost, which becomes the true cost when the block is left.

    `cost(tokens=n)` sets the true cost; units that are not named, and a block that never calls it,
    cost what was reserved. If the block raises before `cost` was called, nothing is charged.
    """

    def __init__(
        self,
        quota: Quota,
        subject: str,
        reserved: Mapping[str, int],
        seconds: float,
        wait: float | None,
        priority: int,
        timeout: float | None,
    ) -> None:
        self._quota = quota
        self._subject = subject
        self._seconds = seconds
        self._wait = wait
        self._priority = priority
        self._timeout = timeout
        self._cost: dict[str, int] | None = None
        self.reserved = dict(reserved)
        """What was reserved."""
        self.taken: types.Taken | None = None
        """The limits, as the reservation left them."""
        self.was_open: bool | None = None
        """After the block: False if the hold had ended before, at the price of the reservation, or
        if settling it was repeated."""

    def cost(self, cost: Mapping[str, int] | None = None, /, **units: int) -> None:
        """Sets the true cost."""
        self._cost = {**(self._cost or {}), **_cost(cost, units)}

    def __enter__(self) -> Hold:
        self.taken = self._quota._take(
            self._subject,
            self.reserved,
            self._seconds,
            f"h-{uuid4().hex}",
            self._wait,
            self._priority,
            self._timeout,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.taken is None:
            return
        cost = self._cost
        if cost is None and kind is None:
            cost = self.reserved
        self.was_open = self._quota._settle(self.taken.hold, cost)


def _cost(cost: Mapping[str, int] | None, units: Mapping[str, int]) -> dict[str, int]:
    whole = {**(cost or {}), **units}
    if not whole:
        raise errors.InvalidArgument("a cost is missing", hint="give it as requests=1, tokens=500")
    for unit, count in whole.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 2**64:
            raise errors.InvalidArgument(f"the cost of {unit} is {count!r}, no whole number")
    return whole


def _taken(outcome: wire.Admitted | wire.Refusal | wire.Undecided) -> types.Taken:
    if isinstance(outcome, wire.Admitted):
        return types.taken(outcome)
    if isinstance(outcome, wire.Undecided):
        raise errors.from_number(
            outcome.number, outcome.message, sent=False, retry_after=None, details=b""
        )
    ns = outcome.retry_after_ns
    denied = errors.QuotaDenied(
        f"the limit {outcome.limit!r} has {outcome.have} {outcome.unit} left, {outcome.need} are "
        "needed",
        sent=False,
        retry_after=None if ns is None or outcome.is_exhausted else ns / 1e9,
    )
    denied.limit, denied.unit = outcome.limit, outcome.unit
    denied.have, denied.need = outcome.have, outcome.need
    denied.is_exhausted = outcome.is_exhausted
    raise denied
