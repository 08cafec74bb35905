#!/bin/sh
# Apache Kafka: a broker and its controller in one process, on loopback.
#
#   kafka PORT CONTROLLER_PORT DIRECTORY    runs one with its data in that directory, until it is killed
#   kafka --version
#
# The flags of the virtual machine are those that Kafka's own kafka-server-start.sh gives a broker. What
# the properties do not name is at Kafka's defaults: it syncs nothing before a segment is full.
set -eu
lib=$(CDPATH='' cd -- "$(dirname -- "$0")/../kafka/target/lib" && pwd)

if [ "${1:-}" = --version ]; then
    exec java -cp "$lib/*" kafka.Kafka --version 2>/dev/null
fi
if [ $# != 3 ]; then
    echo "usage: kafka PORT CONTROLLER_PORT DIRECTORY" >&2
    exit 2
fi
port=$1 controller=$2 directory=$3
properties=$directory/server.properties

# One broker is fewer than the three that the internal topics ask for.
cat >"$properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
log.dirs=$directory/data
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
END
mkdir -p "$directory/data"
# A cluster has an id: sixteen bytes in base64. What this says of its success is of no use to anybody.
java -Xmx256M -cp "$lib/*" kafka.tools.StorageTool format -t dGVscGhlcmJlbmNocGVlcg \
    -c "$properties" >/dev/null
exec java -Xms1G -Xmx1G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 \
    -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent \
    -Djava.awt.headless=true -cp "$lib/*" kafka.Kafka "$properties"
