"""`TelpherBudget` in the races that budgets of LiteLLM lose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from nodes import serving

import telpher
from pages import example
from telpher.testing import Node

pytest.importorskip("litellm")

import litellm
from litellm.exceptions import BudgetExceededError, RateLimitError

from telpher.ext.litellm import TelpherBudget, largest_cost

LIMITS = [
    {
        "name": "budget",
        "match": "acme/team/*",
        "unit": "tokens",
        "budget": 100,
        "every": "never",
        "durability": "sync",
    },
    {"name": "slots", "match": "acme/slots/*", "unit": "concurrency", "capacity": 1},
]


@pytest.fixture(scope="session")
def limited(interval: float) -> Iterator[Node]:
    with serving(interval, limits=LIMITS) as started:
        yield started


def make(client: telpher.Client, subject: str, **more: Any) -> TelpherBudget:
    more.setdefault("estimate", lambda data: {"tokens": 60})
    return TelpherBudget(client, subject=lambda key, data: subject, **more)


async def before(budget: TelpherBudget, call: str) -> None:
    data = {"model": "m", "messages": [], "litellm_call_id": call}
    await budget.async_pre_call_hook(SimpleNamespace(), None, data, "completion")


async def after(budget: TelpherBudget, call: str, tokens: int) -> None:
    response = SimpleNamespace(usage=SimpleNamespace(total_tokens=tokens))
    await budget.async_log_success_event({"litellm_call_id": call}, response, None, None)


async def left(client: telpher.Client, subject: str) -> int | None:
    return (await client.quota.peek(subject)).remaining


async def test_calls_at_once_do_not_pass_a_budget_for_one(limited: Node) -> None:
    async with telpher.connect(limited.address) as one, telpher.connect(limited.address) as two:
        budgets = [make(one, "acme/team/a"), make(two, "acme/team/a")]
        calls = [before(budgets[number % 2], str(number)) for number in range(20)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(it is None for it in results) == 1
        assert all(isinstance(it, BudgetExceededError) for it in results if it is not None)


async def test_true_cost_is_settled_once(limited: Node) -> None:
    async with telpher.connect(limited.address) as client:
        budget = make(client, "acme/team/b")
        await before(budget, "c")
        await before(budget, "c")
        assert await left(client, "acme/team/b") == 40
        await asyncio.gather(*(after(budget, "c", 7) for _ in range(5)))
        await budget.async_log_failure_event({"litellm_call_id": "c"}, None, None, None)
        assert await left(client, "acme/team/b") == 93


async def test_failed_call_costs_nothing(limited: Node) -> None:
    async with telpher.connect(limited.address) as client:
        budget = make(client, "acme/team/c")
        await before(budget, "c")
        await budget.async_log_failure_event({"litellm_call_id": "c"}, None, None, None)
        await budget.async_post_call_failure_hook(
            {"litellm_call_id": "c"}, ValueError(), SimpleNamespace()
        )
        assert await left(client, "acme/team/c") == 100


async def test_hold_of_a_dead_process_ends_by_itself(limited: Node) -> None:
    estimate = {"estimate": lambda data: {"concurrency": 1}, "hold_seconds": 1.0}
    async with telpher.connect(limited.address) as client:
        async with telpher.connect(limited.address) as dying:
            await before(make(dying, "acme/slots/d", **estimate), "c")
        budget = make(client, "acme/slots/d", **estimate)
        with pytest.raises(RateLimitError):
            await before(budget, "d")
        async with client.quota.hold("acme/slots/d", {"concurrency": 1}, wait=30) as hold:
            assert hold.taken is not None


async def test_hold_survives_kill9_of_the_node() -> None:
    with Node(limits=LIMITS) as own:
        await hold_across_a_restart(own)


async def hold_across_a_restart(own: Node) -> None:
    async with telpher.connect(own.address) as client:
        budget = make(client, "acme/team/e")
        await before(budget, "c")
        await asyncio.to_thread(own.restart)
        with pytest.raises(BudgetExceededError):
            await before(budget, "d")
        await after(budget, "c", 10)
        assert await left(client, "acme/team/e") == 90


def test_largest_cost_counts_input_and_output() -> None:
    data = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 50,
    }
    cost = largest_cost(data)
    assert cost["requests"] == 1
    assert 50 < cost["tokens"] < 100
    assert cost["usd_micros"] > 0
    assert "usd_micros" not in largest_cost({**data, "model": "nobody/knows"})


async def test_example_of_the_page_limits_users(
    limited: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm, "callbacks", [])
    call = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    async with telpher.connect(limited.address) as client:
        found = await example("litellm", node=client)
        (budget,) = litellm.callbacks
        assert budget is found["budget"]
        user = SimpleNamespace(user_id="ada")
        cheap = {**call, "max_tokens": 20, "litellm_call_id": "1"}
        await budget.async_pre_call_hook(user, None, cheap, "completion")
        dear = {**call, "max_tokens": 80, "litellm_call_id": "2"}
        with pytest.raises(BudgetExceededError):
            await budget.async_pre_call_hook(user, None, dear, "completion")
