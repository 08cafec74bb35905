#!/bin/sh
# The tests of franz-go's client: franz-go.sh HOST:PORT TESTS SOURCES.
#
# Left out by the tests themselves: share groups (KIP-932), which are not advertised. Groups of the consumer
# protocol (KIP-848) are refused and go on with the classic one. Left out here:
# TestConsumeRegex wants the internal topic __consumer_offsets; offsets lie in the journal, and in no topic.
# Test848RegexBrokerResolves wants a broker that matches topics for the consumer protocol.
set -eu
export KGO_SEEDS="$1" KGO_TEST_RF=1 KGO_TEST_RECORDS=100000 KGO_LOG_LEVEL=none
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$3"
"$2" -test.timeout 50m -test.skip '^(TestConsumeRegex|Test848RegexBrokerResolves)$' -test.v >"$work/log" 2>&1 || {
    grep -E '^ *--- FAIL|^panic' "$work/log" || true
    tail -n 40 "$work/log"
    exit 1
}
passed=$(grep -c '^--- PASS' "$work/log" || true)
skipped=$(grep -c '^ *--- SKIP' "$work/log" || true)
echo "$passed passed, $skipped skipped:"
grep '^ *--- SKIP' "$work/log" || true
