#!/bin/sh
# Stands where librdkafka's tests look for Kafka's own script; its jars are in CLASSPATH.
exec java -Xmx256m org.apache.kafka.tools.TopicCommand "$@"
