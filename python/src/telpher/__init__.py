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

from telpher._async._client import Client, Connecting, connect
from telpher._async._conversation import Answer, Conversation
from telpher._async._quota import Hold, Quota, QuotaDenied
from telpher._async._records import Records
from telpher._async._subscription import Incoming, Subscription
from telpher._body import Body
from telpher._errors import *  # noqa: F403
from telpher._errors import __all__ as _errors
from telpher._options import RetryPolicy
from telpher._types import *  # noqa: F403
from telpher._types import __all__ as _types

try:
    __version__ = version("telpher")
except PackageNotFoundError:
    # The package is used from a source tree.
    __version__ = "0.0.0"

__all__ = [
    "Answer",
    "Body",
    "Client",
    "Connecting",
    "Conversation",
    "Hold",
    "Incoming",
    "Quota",
    "QuotaDenied",
    "Records",
    "RetryPolicy",
    "Subscription",
    "connect",
    *_errors,
    *_types,
]
