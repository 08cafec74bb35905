"""Where the `telpher` program is, which runs a node."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from telpher._errors import Unsupported

CONTAINER = (
    "docker run --rm -p 7400:7400 -p 7401:7401 -p 9092:9092 telpher serve --dev --insecure "
    "--native-listen 0.0.0.0:7400 --http-listen 0.0.0.0:7401"
)


def find_binary() -> Path:
    """Returns the path of the `telpher` program: TELPHER_BINARY, that of this package, or the one
    in PATH. Raises `Unsupported` if there is none for this platform."""
    named = os.environ.get("TELPHER_BINARY")
    if named:
        path = Path(named)
        if not path.is_file():
            raise Unsupported(
                f"TELPHER_BINARY is {named}, which is no file",
                hint="set it to the path of the `telpher` program, or unset it",
            )
        return path
    program = "telpher.exe" if sys.platform == "win32" else "telpher"
    for directory in _scripts():
        path = directory / program
        if path.is_file() and not _is_script(path):
            return path
    found = shutil.which(program)
    if found is not None and not _is_script(Path(found)):
        return Path(found)
    raise Unsupported(
        f"this installation has no `telpher` program for {sysconfig.get_platform()}",
        hint=f"run a node in a container (`{CONTAINER}`), or set TELPHER_BINARY to a program",
    )


def _scripts() -> list[Path]:
    """Returns where installers put programs."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    return [Path(sysconfig.get_path("scripts", scheme)) for scheme in schemes]


def _is_script(path: Path) -> bool:
    """True for the script of the package without a program, which only says that it is missing."""
    with path.open("rb") as file:
        head = file.read(2)
    return head == b"#!" or b"telpher._missing" in path.read_bytes()[-4096:]
