"""The command `telpher` of the package for platforms that have no program of their own."""

from __future__ import annotations

import os
import subprocess
import sys

from telpher._binary import CONTAINER, find_binary
from telpher._errors import Unsupported


def main() -> int:
    """Runs the program that TELPHER_BINARY or PATH names, or says how to get one."""
    try:
        program = str(find_binary())
    except Unsupported as error:
        print(f"telpher: {error.message}", file=sys.stderr)
        print(
            "The client for Python works fully. For a node, run it in a container:", file=sys.stderr
        )
        print(f"  {CONTAINER}", file=sys.stderr)
        print("or set TELPHER_BINARY to a `telpher` program.", file=sys.stderr)
        return 1
    arguments = [program, *sys.argv[1:]]
    if os.name == "posix":
        os.execv(program, arguments)
    return subprocess.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
