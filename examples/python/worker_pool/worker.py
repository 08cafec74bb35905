"""A worker: any number of these processes share the jobs of one mailbox.

A job waits on disk until a worker returns from it. A worker that dies has its job delivered again
to another one, and so has a job that fails. The result is a message of its own whose id is that of
the job: a job that runs twice has one result.
"""

import asyncio
import os

import telpher

ATTEMPTS_MAX = 5
JOBS = "acme/media/thumbnails"
RESULTS = "acme/media/results"
WORK_SECONDS = float(os.environ.get("WORK_SECONDS", "0.1"))


async def thumbnail(picture: str, attempt: int) -> str:
    """Stands for work that takes a while and fails now and then."""
    await asyncio.sleep(WORK_SECONDS)
    if picture.startswith("broken"):
        raise ValueError(f"{picture} is no picture")
    if picture.startswith("flaky") and attempt < 3:
        raise TimeoutError(f"{picture} could not be read")
    return f"{picture}.thumbnail.png"


async def main() -> None:
    """Works until SIGTERM, and finishes the jobs that it has begun."""
    worker = telpher.Agent(JOBS, description="Makes thumbnails.")
    async with telpher.connect(name=JOBS, timeout=60) as node:

        @worker.mailbox
        async def job(message: telpher.Delivery) -> None:
            job = message.json()
            try:
                made = await thumbnail(job["picture"], message.delivery)
                result = {"job": job["id"], "made": made}
            except Exception as error:
                if message.delivery < ATTEMPTS_MAX:
                    raise telpher.HandlerError(str(error), retry_after=0.2) from error
                result = {"job": job["id"], "error": str(error)}
            await node.write(RESULTS, result, id=job["id"])

        await worker.serve(concurrency=4, drain=30)


if __name__ == "__main__":
    asyncio.run(main())
