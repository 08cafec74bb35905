#!/bin/sh
# Apache Kafka: a broker and its controller in one process, on loopback.
#
#   kafka PORT CONTROLLER_PORT DIRECTORY ID VOTERS    runs one with its data in that directory, until it
#                                                     is killed; VOTERS lists ID@HOST:CONTROLLER_PORT of
#                                                     all brokers, separated by commas
#   kafka --version
#
# The flags of the virtual machine are those that Kafka's own kafka-server-start.sh gives a broker. What
# the properties do not name is at Kafka's defaults: it syncs nothing before a segment is full. Topics are
# deleted after a second instead of a minute, so that an earlier run does no work in a later one.
set -eu
lib=$(CDPATH='' cd -- "$(dirname -- "$0")/../kafka/target/lib" && pwd)

if [ "${1:-}" = --version ]; then
    exec java -cp "$lib/*" kafka.Kafka --version 2>/dev/null
fi
if [ $# != 5 ]; then
    echo "usage: kafka PORT CONTROLLER_PORT DIRECTORY ID VOTERS" >&2
    exit 2
fi
port=$1 controller=$2 directory=$3 id=$4 voters=$5
properties=$directory/server.properties

# The internal topics ask for three brokers; one broker is fewer.
replicas=1
in_sync=1
case $voters in
*,*,*) replicas=3 in_sync=2 ;;
esac
cat >"$properties" <<END
process.roles=broker,controller
node.id=$id
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
log.dirs=$directory/data
log.segment.delete.delay.ms=1000
offsets.topic.replication.factor=$replicas
share.coordinator.state.topic.replication.factor=$replicas
share.coordinator.state.topic.min.isr=$in_sync
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$in_sync
END
mkdir -p "$directory/data"
# A cluster has an id: sixteen bytes in base64. What this says of its success is of no use to anybody.
java -Xmx256M -cp "$lib/*" kafka.tools.StorageTool format -t dGVscGhlcmJlbmNocGVlcg \
    -c "$properties" >/dev/null
exec java -Xms1G -Xmx1G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 \
    -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent \
    -Djava.awt.headless=true -cp "$lib/*" kafka.Kafka "$properties"
