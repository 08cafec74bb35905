#!/bin/sh
# Runs every program that build.sh has built for a moment, in every mode, and checks what it
# prints and how it ends. Takes about a minute; fails at the first thing that is wrong.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if ! command -v python3 >/dev/null 2>&1; then
    echo "smoke.sh: missing: python3" >&2
    echo "hint: apt-get install python3" >&2
    exit 1
fi
exec python3 "$here/smoke.py" "$here/bin"
