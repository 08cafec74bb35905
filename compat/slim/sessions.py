"""Every kind of session between two versions of slim-bindings: `sessions.py URL PYTHON PYTHON`.

Each of the two Pythons has a version of its own; both call, and both are called.
"""

import subprocess
import sys
import uuid
from pathlib import Path

KINDS = ("point-to-point", "unreliable", "point-to-point-mls", "group", "group-mls", "rpc")
APPLICATION = str(Path(__file__).with_name("application.py"))


def start(python, url, role, kind, suffix):
    words = [python, APPLICATION, url, role, kind, suffix]
    return subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def run(caller, callee, url, kind):
    suffix = "-" + uuid.uuid4().hex[:8]
    serving = start(callee, url, "callee", kind, suffix)
    try:
        line = serving.stderr.readline()
        assert line == "ready\n", line + serving.stderr.read()
        calling = start(caller, url, "caller", kind, suffix)
        try:
            _, said = calling.communicate(timeout=120)
        finally:
            calling.kill()
        assert calling.returncode == 0, said
    finally:
        serving.kill()
        serving.wait()


if __name__ == "__main__":
    url, *pythons = sys.argv[1:]
    ways = [pythons] if pythons[0] == pythons[1] else [pythons, pythons[::-1]]
    for caller, callee in ways:
        for kind in KINDS:
            run(caller, callee, url, kind)
            print("   ok:", kind, file=sys.stderr, flush=True)
