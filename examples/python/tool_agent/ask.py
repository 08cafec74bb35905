"""Asks the assistant: `ask.py CONVERSATION QUESTION`. Prints the answer while it is written."""

import asyncio
import sys

import telpher


async def main() -> None:
    """Asks one question."""
    name, text = sys.argv[1:]
    async with telpher.connect(timeout=60) as node:
        chat = node.conversation(name)
        asked = await chat.append(text, author="customer")
        # The id of the message is that of the job: repeating the program's calls asks once.
        await node.write("acme/shop/assistant", {"conversation": name}, id=asked.ids[0])
        shown = ""
        async for event in chat.follow(after=asked.last):
            match event:
                case telpher.Delta() if event.text:
                    shown += event.text
                    print(event.text, end="", flush=True)
                case telpher.Event(message) if message.text and message.status == "complete":
                    # The beginning of the answer may have been written before this program looked.
                    print(message.text.removeprefix(shown))
                    return
                case telpher.Event(message) if message.text:
                    shown = ""  # An instance died while it answered; another one will.
                    print()


if __name__ == "__main__":
    asyncio.run(main())
