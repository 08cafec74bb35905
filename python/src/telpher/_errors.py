"""Errors: one class per error code, and what a program may do after each.

Every failure of this package is a `TelpherError`. Its `code` is stable and the same in all
protocols of Telpher (`docs/reference/errors.md`); `telpher explain CODE` prints more about one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

__all__ = [
    "BudgetExceeded",
    "Busy",
    "Cancelled",
    "Conflict",
    "DeadlineExceeded",
    "Denied",
    "Gone",
    "HandlerError",
    "IdReused",
    "InternalError",
    "InvalidArgument",
    "LeaseExpired",
    "Moved",
    "NoResponder",
    "NotFound",
    "ProtocolError",
    "QuotaDenied",
    "Replaced",
    "Retry",
    "TelpherError",
    "Throttled",
    "TooLarge",
    "Trimmed",
    "Unauthenticated",
    "Unavailable",
    "Unconfirmed",
    "UnknownMethod",
    "Unsupported",
    "UsageError",
]


class Retry(StrEnum):
    """Whether an operation that failed may be repeated."""

    NO = "no"
    """Repeating it gives the same error."""
    SAFE = "safe"
    """It was not executed: repeat it after a pause."""
    IF_IDEMPOTENT = "if_idempotent"
    """It may have been executed: repeat it if executing it twice does no harm, or with its id."""


class TelpherError(Exception):
    """An operation that failed.

    ```
    try:
        await node.request("acme/demo/upper", "hello")
    except telpher.TelpherError as error:
        if error.retry == "safe":
            await asyncio.sleep(error.retry_after or 0.1)
    ```
    """

    code: str = "internal"
    """The name of the error, such as `no_responder`."""
    number: ClassVar[int] = 16
    hint: str = "this is a defect: the log of the side that raised it has details"
    """What to do about it, in one sentence."""
    retry_after: float | None
    """Seconds after which a retry may succeed, if the node knows."""
    details: bytes
    """What the responder attached for programs."""
    members: Mapping[str, Any]
    """Further members of the node's problem document, such as `head_seq`."""

    _retry: ClassVar[Retry] = Retry.NO
    _executed: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        sent: bool | None = None,
        retry_after: float | None = None,
        details: bytes = b"",
        members: Mapping[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        self.details = details
        self.members = members or {}
        self._sent = sent
        if hint is not None:
            self.hint = hint

    @property
    def may_have_been_executed(self) -> bool:
        """True if the operation may have had an effect. False means that it certainly had none."""
        return self._executed and self._sent is not False

    @property
    def retry(self) -> Retry:
        """Whether the operation may be repeated."""
        if self._retry is Retry.IF_IDEMPOTENT and self._sent is False:
            return Retry.SAFE
        return self._retry

    def __str__(self) -> str:
        pause = "" if self.retry_after is None else f" (try again after {self.retry_after:g} s)"
        return f"{self.code}: {self.message}{pause}\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(
    kind: type[TelpherError], args: tuple[Any, ...], state: dict[str, Any]
) -> TelpherError:
    error = kind(*args)
    error.__dict__.update(state)
    return error


class NoResponder(TelpherError):
    """No agent is subscribed under the name."""

    code, number, _retry = "no_responder", 1, Retry.SAFE
    hint = (
        "check the name (`telpher agents` lists the agents that are connected), or start an agent "
        "under it"
    )


class UnknownMethod(TelpherError):
    """The agent has no such method."""

    code, number = "unknown_method", 2
    hint = "call one of the methods that the agent has"


class Busy(TelpherError):
    """A window is full: the caller's own, or that of every instance."""

    code, number, _retry = "busy", 3, Retry.SAFE
    hint = "retrying after a pause is safe; if this goes on, start more instances"


class Throttled(TelpherError):
    """A limit that covers the sender is used up; `retry_after` has the time to wait."""

    code, number, _retry = "throttled", 4, Retry.SAFE
    hint = "retrying is safe once the limit has refilled"


class TooLarge(TelpherError):
    """A body, message or batch is larger than the receiver accepts."""

    code, number = "too_large", 5
    hint = "send less at once, or raise the limit at the receiver"


class Denied(TelpherError):
    """The client does not have the right for this operation or name."""

    code, number = "denied", 6
    hint = (
        "bind the token to that name (`telpher token bind TOKEN --for PATTERN`), or use one that "
        "may do this (`--role admin`)"
    )


class Cancelled(TelpherError):
    """The call was cancelled; the handler may have run in part."""

    code, number, _executed = "cancelled", 7, True
    hint = "the handler may have run in part"


class DeadlineExceeded(TelpherError, TimeoutError):
    """The deadline passed in a queue, on the way, or in the handler."""

    code, number, _retry, _executed = "deadline_exceeded", 8, Retry.IF_IDEMPOTENT, True
    hint = "it may have been executed: set a longer `timeout`, and retry only if it is idempotent"


class Unconfirmed(TelpherError, ConnectionError):
    """The connection, or the disk, failed before the outcome was known."""

    code, number, _retry, _executed = "unconfirmed", 9, Retry.IF_IDEMPOTENT, True
    hint = "it may have been executed: retry only if it is idempotent"


class HandlerError(TelpherError):
    """The handler ran and returned an error of its own.

    Raise it in a method to answer with your own message; every other exception of a method becomes
    one as well.
    """

    code, number, _executed = "handler_error", 10, True
    hint = "the handler ran and returned this error"


class InvalidArgument(TelpherError, ValueError):
    """A name, an option or a body is invalid."""

    code, number = "invalid_argument", 11
    hint = "correct the name, the option or the body"


class Unauthenticated(TelpherError):
    """The token is missing, unknown or revoked."""

    code, number = "unauthenticated", 12
    hint = "pass a valid `token=`, or set TELPHER_TOKEN; `telpher token add NAME` makes one"


class Unsupported(TelpherError):
    """The other side does not offer this version, feature or durability."""

    code, number = "unsupported", 13
    hint = "upgrade the node, or do not use it"


class Unavailable(TelpherError, ConnectionError):
    """There is no connection, the node is shutting down, or it cannot write."""

    code, number, _retry = "unavailable", 14, Retry.SAFE
    hint = "it was not executed: retry once the cause is gone"


class ProtocolError(TelpherError):
    """The peer violated the protocol, or is no Telpher node."""

    code, number = "protocol", 15
    hint = "the two sides do not understand each other: check the address and compare the versions"


class InternalError(TelpherError):
    """A defect; the log of the side that raised it has details."""

    code, number, _executed = "internal", 16, True


class Replaced(TelpherError):
    """Another connection subscribed as the same instance."""

    code, number = "replaced", 17
    hint = "give each connection an instance name of its own, or none"


class Conflict(TelpherError):
    """The stream or conversation does not end where the writer expected.

    `head` is where it ends: the number of the newest message of a conversation, or the offset after
    the last record of a stream.
    """

    code, number = "conflict", 18
    hint = "read what others appended, then append with the new end as expected"
    head: int | None = None


class NotFound(TelpherError, LookupError):
    """Nothing exists under the name."""

    code, number = "not_found", 19
    hint = "check the name; the first write creates it"


class Gone(TelpherError, LookupError):
    """It was erased, and its name is not used again."""

    code, number = "gone", 20
    hint = "it was erased: use another name"


class IdReused(TelpherError):
    """The id was used before for something else."""

    code, number = "id_reused", 21
    hint = "use a new id for new content"


class Trimmed(TelpherError, LookupError):
    """The requested data is before the oldest that is stored; `start` is the oldest."""

    code, number = "trimmed", 22
    hint = "continue at the oldest that is stored (`start`)"
    start: int | None = None


class BudgetExceeded(TelpherError):
    """A single turn of a conversation is larger than the budget."""

    code, number = "over_budget", 23
    hint = "raise the budget, or leave out parts of that turn"


class Moved(TelpherError):
    """Another node of the cluster leads what the request is for."""

    code, number, _retry = "moved", 24, Retry.SAFE
    hint = "give `connect` the addresses of all nodes; it was not executed"


class LeaseExpired(TelpherError):
    """The lease of a message of a mailbox has ended; it is delivered again."""

    code, number = "lease_expired", 25
    hint = "take the message again, with a longer lease"


class UsageError(InvalidArgument, RuntimeError):
    """The client was used where it cannot work: after a fork, in another event loop, or closed."""

    hint = "connect again where the client is used"


class QuotaDenied(Throttled):
    """A take that a limit denied; nothing was taken.

    `limit`, `unit`, `have` and `need` say which one and why. `retry_after` is when it would pass;
    None if waiting does not help (`is_exhausted`: a budget is spent).
    """

    limit: str = ""
    unit: str = ""
    have: int = 0
    need: int = 0
    is_exhausted: bool = False

    @property
    def retry(self) -> Retry:
        """`no` if waiting does not help."""
        return Retry.NO if self.is_exhausted else Retry.SAFE


_CLASSES: tuple[type[TelpherError], ...] = (
    NoResponder,
    UnknownMethod,
    Busy,
    Throttled,
    TooLarge,
    Denied,
    Cancelled,
    DeadlineExceeded,
    Unconfirmed,
    HandlerError,
    InvalidArgument,
    Unauthenticated,
    Unsupported,
    Unavailable,
    ProtocolError,
    InternalError,
    Replaced,
    Conflict,
    NotFound,
    Gone,
    IdReused,
    Trimmed,
    BudgetExceeded,
    Moved,
    LeaseExpired,
)
BY_NUMBER: dict[int, type[TelpherError]] = {kind.number: kind for kind in _CLASSES}
BY_CODE: dict[str, type[TelpherError]] = {kind.code: kind for kind in _CLASSES}


def from_number(
    number: int,
    message: str,
    *,
    sent: bool | None,
    retry_after: float | None,
    details: bytes,
) -> TelpherError:
    """Returns the error for a failure that the peer sent."""
    kind = BY_NUMBER.get(number)
    if kind is None:
        message = f"{message} (code {number}, which this version does not know)"
        kind = InternalError
    error = kind(message, sent=sent, retry_after=retry_after, details=details)
    if len(details) >= 8:
        place = int.from_bytes(details[:8], "little")
        if isinstance(error, Conflict):
            error.head = place
        elif isinstance(error, Trimmed):
            error.start = place
    return error


def from_problem(status: int, document: Mapping[str, Any]) -> TelpherError:
    """Returns the error for a problem document of the node (RFC 9457)."""
    code = str(document.get("code", "internal"))
    kind = BY_CODE.get(code, InternalError)
    message = str(document.get("detail") or document.get("title") or f"status {status}")
    retry_ms = document.get("retry_ms")
    error = kind(
        message,
        sent=None,
        retry_after=retry_ms / 1000 if isinstance(retry_ms, int | float) else None,
        members={key: value for key, value in document.items() if key not in _COMMON},
    )
    head, start = document.get("head_seq"), document.get("start_seq")
    if isinstance(error, Conflict) and isinstance(head, int):
        error.head = head
    if isinstance(error, Trimmed) and isinstance(start, int):
        error.start = start
    return error


_COMMON = frozenset(("type", "title", "status", "detail", "code"))
