#!/bin/sh
# What Apache Kafka's own tools do: java.sh HOST:PORT, with their jars in CLASSPATH.
set -eu
broker=$1
run=$(date +%s)-$$
topic=java-$run
group=group-$run
tools=org.apache.kafka.tools

tool() {
    name=$1
    shift
    timeout 120 java -Xmx256m "$name" "$@"
}

# Says that a part went well if its output has that in it.
expect() {
    part=$1 pattern=$2
    output=$(cat)
    if ! printf '%s\n' "$output" | grep -q -- "$pattern"; then
        printf 'failed %s: no `%s` in\n%s\n' "$part" "$pattern" "$output"
        exit 1
    fi
    echo "ok $part"
}

tool $tools.BrokerApiVersionsCommand --bootstrap-server "$broker" | expect versions 'Produce(0): 0 to 13 \[usable: 13\]'
tool $tools.TopicCommand --bootstrap-server "$broker" --create --topic "$topic" \
    --partitions 2 --replication-factor 1 --config retention.ms=1000000 | expect create 'Created topic'
tool $tools.TopicCommand --bootstrap-server "$broker" --describe --topic "$topic" \
    | expect describe 'PartitionCount: 2.*retention.ms=1000000'
tool $tools.VerifiableProducer --bootstrap-server "$broker" --topic "$topic" --max-messages 500 \
    | expect produce '"sent":500,"acked":500'
tool $tools.VerifiableConsumer --bootstrap-server "$broker" --topic "$topic" --group-id "$group" \
    --max-messages 500 --reset-policy earliest | expect consume '"success":true'
tool $tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$broker" --describe \
    --group "$group" | expect group "$group.*$topic"
tool $tools.GetOffsetShell --bootstrap-server "$broker" --topic "$topic" | expect offsets "$topic:0:"
tool $tools.LogDirsCommand --bootstrap-server "$broker" --describe --topic-list "$topic" \
    | expect log-dirs "\"partition\":\"$topic-0\""
tool $tools.TransactionsCommand --bootstrap-server "$broker" list | expect transactions TransactionalId
tool $tools.EndToEndLatency "$broker" "$topic" 200 all 100 | expect latency 'Avg latency'
tool $tools.TopicCommand --bootstrap-server "$broker" --delete --topic "$topic" </dev/null
tool $tools.TopicCommand --bootstrap-server "$broker" --list | (! grep -qx -- "$topic") && echo "ok delete"
