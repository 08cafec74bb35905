# Made by tools/make_sync.py from telpher/_async/_records.py: do not edit.
"""Streams of records: append with an expected end, read, follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from telpher import _errors as errors
from telpher import _types as types
from telpher import _wire as wire
from telpher._sync._repeat import call
from telpher._blocking.link import Link
from telpher._body import encode
from telpher._core import Route
from telpher._options import READ_RETRY

RECORDS_MAX = 1_000
BYTES_MAX = 1 << 20


class Records:
    """A stream of records, `org/namespace/x`, from `Client.records`.

    ```
    log = node.records("acme/demo/log")
    end = log.append("job 7 is done")                # on disk when it returns
    log.append("job 8", "job 9", expect=end.next)    # Conflict if another writer was faster
    for record in log.follow():                      # existing records, then new ones
        print(record.offset, record.text())
    ```
    """

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._route: Route = (wire.RECORDS, name, "")
        self.name = name
        """The full name."""

    def append(
        self, *records: Any, expect: int | None = None, timeout: float | None = None
    ) -> types.AppendedRecords:
        """Appends records, all or none; returns when they are on disk.

        `expect` is the offset that the first record must get: if the stream ends elsewhere,
        `Conflict` has its end in `head`, and nothing is appended. With `expect` an append can be
        repeated safely.
        """
        if not records:
            raise errors.InvalidArgument("an append needs at least one record")
        body = wire.append(expect, [encode(record) for record in records])
        payload = call(self._link, wire.APPEND, self._route, body, timeout)
        return types.AppendedRecords(*wire.appended(payload))

    def read(
        self,
        start: int = 0,
        *,
        limit: int = RECORDS_MAX,
        bytes_max: int = BYTES_MAX,
        timeout: float | None = None,
    ) -> types.RecordPage:
        """Reads up to `limit` records from the offset `start`, at least one if there is one."""
        body = wire.read(start, limit, bytes_max)
        payload = call(self._link, wire.READ, self._route, body, timeout, READ_RETRY)
        return types.record_page(payload)

    def all(self, start: int = 0) -> Iterator[types.Record]:
        """Yields the records that are stored, from the offset `start`."""
        while True:
            page = self.read(start)
            for record in page.records:
                yield record
            if not page.records or page.records[-1].offset + 1 >= page.next:
                return
            start = page.records[-1].offset + 1

    def follow(self, start: int = 0) -> Iterator[types.Record]:
        """Yields the records from the offset `start`, and then new ones as they are appended.

        It survives reconnects, and waits for the first record of a stream that does not exist.
        """
        while True:
            try:
                leader = self._link.leader(self._route)
                items = leader.items(
                    wire.FOLLOW, 0, self._route, wire.read(start, RECORDS_MAX, BYTES_MAX), None
                )
                try:
                    for payload in items:
                        for record in types.record_page(payload).records:
                            start = record.offset + 1
                            yield record
                finally:
                    items.close()
            except (errors.Unconfirmed, errors.Unavailable):
                self._link.check()
                self._link.sleep(0.05)
            except errors.Moved:
                self._link.look_elsewhere(self._route)
                self._link.sleep(0.05)
