"""Submits jobs and collects their results: `submit.py BATCH PICTURE…`.

Running it again with the same batch submits nothing twice. Results that come while it does not run
wait in their mailbox.
"""

import asyncio
import sys

import telpher

JOBS = "acme/media/thumbnails"
RESULTS = "acme/media/results"


async def main() -> None:
    """Submits one batch."""
    batch, *pictures = sys.argv[1:]
    missing = {f"{batch}-{picture}": picture for picture in pictures}
    collector, results = telpher.Agent(RESULTS), asyncio.Queue[dict[str, str]]()

    @collector.mailbox
    async def result(message: telpher.Delivery) -> None:
        results.put_nowait(message.json())

    async with telpher.connect(name=RESULTS, timeout=60) as node:
        for job, picture in missing.items():
            await node.write(JOBS, {"id": job, "picture": picture}, id=job)
        print("submitted", len(missing), flush=True)
        async with collector.attached(node):
            while missing:
                done = await results.get()
                if missing.pop(done["job"], None):
                    print(done["job"], done.get("made") or f"failed: {done['error']}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
