"""Tools: an agent whose methods a model may call."""

import asyncio
from dataclasses import dataclass

import telpher

orders = telpher.Agent("acme/shop/orders", description="Orders of the shop.", version="1.0.0")


@dataclass
class Order:
    number: int
    status: str
    arrives: str


ORDERS = {
    41: Order(41, "delivered", "last Monday"),
    42: Order(42, "shipped", "on Friday"),
}


@orders.method(named=True)
async def find_order(order: int) -> Order:
    """Returns the status of an order and the day of its arrival."""
    if order not in ORDERS:
        raise telpher.HandlerError(f"there is no order {order}")
    return ORDERS[order]


if __name__ == "__main__":
    asyncio.run(orders.serve())
