"""Telpher for Python: agents, calls, durable work, conversations and quotas.

```
import telpher

async with telpher.connect("tcp://127.0.0.1:7400") as node:
    reply = await node.request("acme/demo/upper", "hello")
```

`telpher serve --dev` starts a node to try it with. `connect` is the way in; `Agent` answers
requests; `telpher.sync` has the same without asyncio; `telpher.testing` starts nodes for tests.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from telpher._async._agent import Agent, Method, Request, Running
from telpher._async._client import Client, Connecting, connect
from telpher._async._conversation import Answer, Conversation
from telpher._async._quota import Hold, Quota
from telpher._async._records import Records
from telpher._async._subscription import Incoming, Subscription
from telpher._body import Body
from telpher._errors import (
    BudgetExceeded,
    Busy,
    Cancelled,
    Conflict,
    DeadlineExceeded,
    Denied,
    Gone,
    HandlerError,
    IdReused,
    InternalError,
    InvalidArgument,
    LeaseExpired,
    Moved,
    NoResponder,
    NotFound,
    ProtocolError,
    QuotaDenied,
    Replaced,
    Retry,
    TelpherError,
    Throttled,
    TooLarge,
    Trimmed,
    Unauthenticated,
    Unavailable,
    Unconfirmed,
    UnknownMethod,
    Unsupported,
    UsageError,
)
from telpher._options import RetryPolicy
from telpher._types import (
    Appended,
    AppendedRecords,
    Cleared,
    Closed,
    ContextWindow,
    ConversationState,
    Delivery,
    Delta,
    Event,
    Head,
    InboxLine,
    Limit,
    ListedConversation,
    Message,
    NewMessage,
    Page,
    Receipt,
    Record,
    RecordPage,
    Retracted,
    Retraction,
    Status,
    Stop,
    Stored,
    Taken,
    UsageRow,
)

try:
    __version__ = version("telpher")
except PackageNotFoundError:
    # The package is used from a source tree.
    __version__ = "0.0.0"

__all__ = [
    "Agent",
    "Answer",
    "Appended",
    "AppendedRecords",
    "Body",
    "BudgetExceeded",
    "Busy",
    "Cancelled",
    "Cleared",
    "Client",
    "Closed",
    "Conflict",
    "Connecting",
    "ContextWindow",
    "Conversation",
    "ConversationState",
    "DeadlineExceeded",
    "Delivery",
    "Delta",
    "Denied",
    "Event",
    "Gone",
    "HandlerError",
    "Head",
    "Hold",
    "IdReused",
    "InboxLine",
    "Incoming",
    "InternalError",
    "InvalidArgument",
    "LeaseExpired",
    "Limit",
    "ListedConversation",
    "Message",
    "Method",
    "Moved",
    "NewMessage",
    "NoResponder",
    "NotFound",
    "Page",
    "ProtocolError",
    "Quota",
    "QuotaDenied",
    "Receipt",
    "Record",
    "RecordPage",
    "Records",
    "Replaced",
    "Request",
    "Retracted",
    "Retraction",
    "Retry",
    "RetryPolicy",
    "Running",
    "Status",
    "Stop",
    "Stored",
    "Subscription",
    "Taken",
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
    "UsageRow",
    "connect",
]
