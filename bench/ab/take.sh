#!/bin/sh
# The Apache Bench test of the rate limiter's report: 1,000 takes for one agent over 50 connections, once with
# a connection for each and once with connections that are kept.
#
#   take.sh URL [REQUESTS [CONNECTIONS]]
#
# A bucket of 100 that refills 10 a second must allow 100 + floor(10 t) of them, in the t seconds that ab says
# it took; one more or less is its clock. Ends with 1 when that does not hold.
set -eu

url=${1:?URL}
requests=${2:-1000}
connections=${3:-50}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

if ! command -v ab >/dev/null 2>&1; then
    echo "take.sh: missing: ab" >&2
    echo "hint: apt-get install apache2-utils" >&2
    exit 1
fi

for keep in "" -k; do
    # A bucket of its own for each run.
    printf '{"agentId":"ab-%s-%s","tokens":1}' "$$" "${keep:-n}" >"$place/take.json"
    # shellcheck disable=SC2086 # no word, or one
    ab $keep -n "$requests" -c "$connections" -p "$place/take.json" -T application/json \
        "$url/api/request" >"$place/said" 2>"$place/error" || {
        cat "$place/error" >&2
        exit 1
    }
    awk -v keep="${keep:-without -k}" '
        /^Complete requests:/      { complete = $3 }
        /^Non-2xx responses:/      { refused = $3 }
        /^Time taken for tests:/   { seconds = $5 }
        /^Requests per second:/    { rate = $4 }
        /^Time per request:/ && !mean { mean = $4 }
        /^ *(50|90|95|99|100)%/    { latency = latency " p" ($1 + 0) "=" $2 }
        END {
            allowed = complete - refused
            must = 100 + int(10 * seconds)
            if (must > complete) must = complete
            holds = allowed - must <= 1 && must - allowed <= 1
            printf "ab %-10s %s/s, %d of %d allowed in %s s, it must be %d +- 1: %s; ms: mean=%s%s\n",
                keep, rate, allowed, complete, seconds, must, holds ? "pass" : "FAIL", mean, latency
            exit !holds
        }
    ' "$place/said"
done
