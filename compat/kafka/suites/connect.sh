#!/bin/sh
# Kafka Connect: lines go from a file into a topic and from there into another file.
# connect.sh HOST:PORT, with the jars in CLASSPATH.
set -eu
broker=$1
lines=6000
topic=connect-$(date +%s)-$$
work=$(mktemp -d)
worker=
trap 'test -z "$worker" || kill -9 "$worker" 2>/dev/null || true; rm -rf "$work"' EXIT

seq -f 'line %g' "$lines" >"$work/source.txt"
cat >"$work/worker.properties" <<END
bootstrap.servers=$broker
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename=$work/offsets
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:0
plugin.discovery=hybrid_warn
END
# Writes the configuration of a connector: its kind, its class, and further lines.
connector() {
    cat >"$work/$1.properties" <<END
name=$1-$topic
connector.class=org.apache.kafka.connect.file.$2
tasks.max=1
file=$work/$1.txt
$3
END
}
connector source FileStreamSourceConnector "topic=$topic
topic.creation.default.partitions=1
topic.creation.default.replication.factor=1"
connector sink FileStreamSinkConnector "topics=$topic"

start() {
    java -Xmx256m org.apache.kafka.connect.cli.ConnectStandalone \
        "$work/worker.properties" "$work/source.properties" "$work/sink.properties" \
        >>"$work/log" 2>&1 &
    worker=$!
}

# Waits until the sink has so many lines.
written() {
    for _ in $(seq 240); do
        test "$(cat "$work/sink.txt" 2>/dev/null | wc -l)" -lt "$1" || return 0
        kill -0 "$worker" 2>/dev/null || break
        sleep 0.5
    done
    echo "the sink has $(cat "$work/sink.txt" 2>/dev/null | wc -l) of $1 lines"
    tail -n 40 "$work/log"
    exit 1
}

start
written "$lines"
# A worker that is stopped and started again goes on where it was.
kill "$worker"
wait "$worker" || true
seq -f 'more %g' "$lines" >>"$work/source.txt"
start
written $((2 * lines))
kill "$worker"
wait "$worker" || true
worker=
cmp "$work/source.txt" "$work/sink.txt"
echo "$((2 * lines)) lines copied in their order by Connect, started twice"
