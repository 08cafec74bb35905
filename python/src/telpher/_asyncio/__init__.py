"""The client's connection, driven by asyncio."""
