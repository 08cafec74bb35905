"""Budgets and rates for the LiteLLM proxy: `TelpherBudget` is a `CustomLogger`.

```
budget = TelpherBudget(node, subject=lambda key, data: f"acme/team/{key.user_id}")
litellm.callbacks = [budget]
```

Before a call its largest cost is held, and afterwards the hold is settled with the true cost. A
take and its check are one step at the node, so calls at the same time never pass a budget together
that has room for one of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import litellm
from litellm.exceptions import BudgetExceededError, RateLimitError
from litellm.integrations.custom_logger import CustomLogger

from telpher import _errors as errors
from telpher._async._client import Client

__all__ = ["TelpherBudget", "largest_cost"]

OUTPUT_TOKENS = 4_096
CALLS_MAX = 100_000


def largest_cost(data: Mapping[str, Any]) -> dict[str, int]:
    """Returns what a call may cost at most, in `requests`, `tokens` and `usd_micros`.

    The output counts as `max_tokens`, or 4,096 tokens if the call has none. A model without a known
    price costs no `usd_micros`.
    """
    model = str(data.get("model", ""))
    given = litellm.token_counter(
        model=model, messages=data.get("messages"), text=data.get("input") or data.get("prompt")
    )
    made = int(data.get("max_completion_tokens") or data.get("max_tokens") or OUTPUT_TOKENS)
    cost = {"requests": 1, "tokens": given + made}
    try:
        dollars = sum(
            litellm.cost_per_token(model=model, prompt_tokens=given, completion_tokens=made)
        )
    except Exception:
        # LiteLLM raises plain exceptions for models that it has no price of.
        return cost
    return {**cost, "usd_micros": _micros(dollars)}


class TelpherBudget(CustomLogger):
    """Holds the largest cost of each call of the LiteLLM proxy, and settles it with the true one.

    `subject` returns the quota subject (`org/namespace/agent`) of a call from its key and its data,
    `estimate` its largest cost. A denied call raises `BudgetExceededError` if a budget is spent,
    else `RateLimitError`; if the node is away, the call fails too. `hold_seconds` is longer than
    the longest call: a hold of a process that died ends then, at the price that was held.
    """

    def __init__(
        self,
        client: Client,
        *,
        subject: Callable[[Any, Mapping[str, Any]], str],
        estimate: Callable[[Mapping[str, Any]], Mapping[str, int]] = largest_cost,
        hold_seconds: float = 600.0,
    ) -> None:
        super().__init__()
        self._client = client
        self._subject = subject
        self._estimate = estimate
        self._hold_seconds = hold_seconds
        self._holds = OrderedDict[str, tuple[int, Mapping[str, int]]]()

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Holds the largest cost of a call, or refuses the call."""
        call = str(data.setdefault("litellm_call_id", uuid4().hex))
        if call in self._holds:
            return data
        reserved = self._estimate(data)
        subject = self._subject(user_api_key_dict, data)
        try:
            taken = await self._client.quota._take(
                subject, reserved, self._hold_seconds, f"litellm-{call}", None, 0, None
            )
        except errors.QuotaDenied as denied:
            if denied.is_exhausted:
                raise BudgetExceededError(
                    current_cost=denied.have, max_budget=denied.need, message=denied.message
                ) from denied
            raise RateLimitError(
                message=denied.message, llm_provider="", model=str(data.get("model", ""))
            ) from denied
        self._holds[call] = (taken.hold, reserved)
        while len(self._holds) > CALLS_MAX:
            # Holds of calls that never ended; they end at the node by themselves.
            self._holds.popitem(last=False)
        return data

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Settles the hold of a call with its true cost."""
        held = self._holds.pop(str(kwargs.get("litellm_call_id")), None)
        if held is None:
            return
        hold, reserved = held
        cost = dict(reserved)
        usage = getattr(response_obj, "usage", None)
        if "tokens" in cost and usage is not None:
            cost["tokens"] = int(usage.total_tokens)
        dollars = kwargs.get("response_cost")
        if "usd_micros" in cost and dollars is not None:
            cost["usd_micros"] = _micros(dollars)
        await self._client.quota._settle(hold, cost)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Returns what was held for a call that failed."""
        await self._release(str(kwargs.get("litellm_call_id")))

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """Returns what was held for a call that the proxy refused after this hook."""
        await self._release(str(request_data.get("litellm_call_id")))

    async def _release(self, call: str) -> None:
        held = self._holds.pop(call, None)
        if held is not None:
            await self._client.quota._settle(held[0], None)


def _micros(dollars: float) -> int:
    """Returns millionths of a dollar, rounded up."""
    return -int(-dollars * 1_000_000 // 1)
