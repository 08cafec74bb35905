"""Telpher without asyncio: the same names as in `telpher`, with blocking calls.

```
import telpher.sync

with telpher.sync.connect("tcp://127.0.0.1:7400") as node:
    reply = node.request("acme/demo/upper", "hello")
```

Threads may share a client. There is no thread in the background: a thread that waits reads.
"""

from __future__ import annotations

from telpher._sync._agent import Agent, Method, Request, Running
from telpher._sync._client import Client, connect
from telpher._sync._conversation import Answer, Conversation
from telpher._sync._quota import Hold, Quota
from telpher._sync._records import Records
from telpher._sync._subscription import Incoming, Subscription

__all__ = [
    "Agent",
    "Answer",
    "Client",
    "Conversation",
    "Hold",
    "Incoming",
    "Method",
    "Quota",
    "Records",
    "Request",
    "Running",
    "Subscription",
    "connect",
]
