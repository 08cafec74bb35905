#!/bin/sh
# librdkafka's own tests: librdkafka.sh HOST:PORT DIRECTORY, with the jars of Kafka's tools in CLASSPATH.
# Tests that need no broker, or librdkafka's mock of one, are left out (-L); so is whatever takes long (-Q).
# 0053 is left out by itself unless RapidJSON (rapidjson-dev) was there when librdkafka was configured.
set -eu
broker=$1
scripts=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Tests that cannot pass, each with its reason.
skip=
without() {
    skip="$skip,$1"
}
without 0081 # also tests access rules, and settings of groups and of brokers that run: there are none
without 0098 # creates topics with three replicas, and there is one broker
without 0101 # creates a topic with three replicas, and there is one broker
without 0103 # creates a topic with three replicas, and there is one broker
without 0109 # adds access rules
without 0115 # adds access rules
without 0119 # adds access rules

mkdir "$work/bin"
cp "$scripts/kafka-bin/kafka-topics.sh" "$work/bin/"
echo "bootstrap.servers=$broker" >"$work/test.conf"
export RDKAFKA_TEST_CONF="$work/test.conf" KAFKA_PATH="$work" BROKERS="$broker"
export TEST_KAFKA_VERSION=4.1.0 TEST_LEVEL=1 TESTS_SKIP="${skip#,}" CI=1
export LD_LIBRARY_PATH="$2/src:$2/src-cpp"
cd "$2/tests"
# The log without colours.
plain() {
    sed 's/\x1b\[[0-9;]*m//g' "$work/log"
}
./test-runner -p1 -Q -L >"$work/log" 2>&1 || {
    plain | grep -A 4 'TEST FAILURE' || true
    plain | tail -n 20
    exit 1
}
# The runner ends with a table of all tests.
passed=$(plain | grep -v '<MAIN>' | grep -c '^| .*| *PASSED |' || true)
skipped=$(plain | grep -c '^| .*| *SKIPPED |' || true)
echo "$passed passed, $skipped skipped"
test "$passed" -gt 0
