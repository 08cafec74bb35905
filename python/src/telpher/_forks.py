"""Marks the connections of a process as foreign in a child that it forks.

A forked child shares the parent's sockets: frames of both would be mixed. So every use of such a
connection in the child is refused.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Shared(Protocol):
    """Something that a forked child must not use."""

    is_foreign: bool


_known: weakref.WeakSet[Shared] = weakref.WeakSet()


def remember(shared: Shared) -> None:
    """Has `shared` marked in every child that is forked from now on."""
    _known.add(shared)


def forget(shared: Shared) -> None:
    """Forgets `shared`."""
    _known.discard(shared)


def _mark() -> None:
    for shared in _known:
        shared.is_foreign = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark)
