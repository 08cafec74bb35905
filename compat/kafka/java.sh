#!/bin/sh
# What Apache Kafka's own tools do: java.sh HOST:PORT, with their jars in CLASSPATH.
set -eu
broker=$1
run=$(date +%s)-$$
topic=java-$run
group=group-$run
work=$(mktemp -d)
members=
trap 'kill $members 2>/dev/null || true; rm -rf "$work"' EXIT
exec 3>&1
tools=org.apache.kafka.tools
configs=kafka.admin.ConfigCommand

# Two minutes are enough for anything; 124 is what ends when they are over.
tool() {
    name=$1
    shift
    timeout 120 java -Xmx256m "$name" "$@" || {
        echo "failed: $name $* ends with $?" >&3
        touch "$work/failed"
        exit 1
    }
}

# One of them that asks for the broker in the way that most of them do.
ask() {
    name=$1
    shift
    tool "$name" --bootstrap-server "$broker" "$@"
}

# Says that a part went well if its output has that in it, and nothing has failed.
expect() {
    part=$1 pattern=$2
    output=$(cat)
    if test -e "$work/failed" || ! printf '%s\n' "$output" | grep -q -- "$pattern"; then
        printf 'failed %s: no `%s` in\n%s\n' "$part" "$pattern" "$output"
        exit 1
    fi
    echo "ok $part"
}

# Says that a part went well if a test says so.
require() {
    part=$1
    shift
    if ! test "$@"; then
        echo "failed $part: $*"
        exit 1
    fi
    echo "ok $part"
}

# Waits until a file has that in it.
await() {
    part=$1 pattern=$2 file=$3 tries=0
    until grep -q -- "$pattern" "$file"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 600 ]; then
            printf 'failed %s: no `%s` in\n' "$part" "$pattern"
            cat "$file"
            exit 1
        fi
        sleep 0.1
    done
    echo "ok $part"
}

ask $tools.BrokerApiVersionsCommand | expect versions 'Produce(0): 0 to 13 \[usable: 13\]'
ask $tools.TopicCommand --create --topic "$topic" \
    --partitions 2 --replication-factor 1 --config retention.ms=1000000 | expect create 'Created topic'
ask $tools.TopicCommand --describe --topic "$topic" \
    | expect describe 'PartitionCount: 2.*retention.ms=1000000'
ask $tools.TopicCommand --alter --topic "$topic" --partitions 4
ask $tools.TopicCommand --describe --topic "$topic" | expect partitions 'PartitionCount: 4'

ask $configs --alter --entity-type topics --entity-name "$topic" \
    --add-config segment.bytes=2000000,cleanup.policy=[compact,delete] | expect configure 'Completed updating config'
ask $configs --describe --entity-type topics --entity-name "$topic" \
    | expect configured 'segment.bytes=2000000'
ask $configs --alter --entity-type topics --entity-name "$topic" \
    --delete-config segment.bytes,cleanup.policy | expect unconfigure 'Completed updating config'
ask $configs --describe --all --entity-type brokers --entity-name 1 \
    | expect broker-config 'num.partitions=3'

ask $tools.VerifiableProducer --topic "$topic" --max-messages 500 | expect produce '"sent":500,"acked":500'

# Two consumers of one group: the second is given its share, and leaves it again.
consume() {
    exec timeout 120 java -Xmx256m $tools.VerifiableConsumer --bootstrap-server "$broker" \
        --topic "$topic" --group-id "$group" --reset-policy earliest
}
consume >"$work/first" & first=$! members=$!
await consume offsets_committed "$work/first"
consume >"$work/second" & second=$! members="$first $!"
await join '"partition":' "$work/second"
await rebalance partitions_revoked "$work/first"
ask $tools.consumer.group.ConsumerGroupCommand --describe --members --group "$group" >"$work/members"
require members "$(grep -c "$group" "$work/members")" = 2
kill $second $first
wait $second $first || true
members=
require leave "$(cat "$work/first" "$work/second" | grep -c shutdown_complete)" = 2
ask $tools.consumer.group.ConsumerGroupCommand --describe --group "$group" >"$work/group"
require group "$(awk -v group="$group" '$1 == group { sum += $4 } END { print sum }' "$work/group")" = 500
ask $tools.consumer.group.ConsumerGroupCommand --list | expect groups "$group"
ask $tools.consumer.group.ConsumerGroupCommand --group "$group" --reset-offsets --to-earliest \
    --topic "$topic" --execute | expect reset "$group.*$topic.* 0"
ask $tools.consumer.group.ConsumerGroupCommand --group "$group" --delete-offsets \
    --topic "$topic" | expect delete-offsets 'Successful'
ask $tools.consumer.group.ConsumerGroupCommand --delete --group "$group" | expect delete-group 'was successful'

# A consumer of the protocol of KIP-848 is told that it is not served.
tool "$(dirname "$0")/ConsumerProtocol.java" "$broker" "$topic" \
    | expect consumer-protocol 'refused: .*group.protocol=classic'

ask $tools.GetOffsetShell --topic "$topic" | expect offsets "$topic:0:"
ask $tools.LogDirsCommand --describe --topic-list "$topic" | expect log-dirs "\"partition\":\"$topic-0\""
printf '{"partitions": [{"topic": "%s", "partition": 0, "offset": -1}], "version": 1}' "$topic" >"$work/delete.json"
ask $tools.DeleteRecordsCommand --offset-json-file "$work/delete.json" | expect delete-records low_watermark

tool $tools.ProducerPerformance --topic "$topic" --num-records 5000 --record-size 200 --throughput -1 \
    --producer-props bootstrap.servers="$broker" | expect producer-performance '5000 records sent'
ask $tools.ConsumerPerformance --topic "$topic" --messages 5000 | expect consumer-performance ', 5[0-9]*, '
tool $tools.ProducerPerformance --topic "$topic" --num-records 2000 --record-size 200 --throughput -1 \
    --transaction-duration-ms 100 --producer-props bootstrap.servers="$broker" \
    | expect transactional-performance '2000 records sent'
tool $tools.EndToEndLatency "$broker" "$topic" 200 all 100 | expect latency 'Avg latency'

ask $tools.TransactionsCommand list >"$work/transactions"
id=$(awk '/^performance/ { print $1; exit }' "$work/transactions")
ask $tools.TransactionsCommand describe --transactional-id "$id" | expect transaction 'CompleteCommit'
ask $tools.TransactionsCommand describe-producers --topic "$topic" --partition 0 | expect producers 'ProducerId'
ask $tools.TransactionsCommand find-hanging --broker-id 1 | expect hanging 'Topic'

ask $tools.TopicCommand --delete --topic "$topic" </dev/null
ask $tools.TopicCommand --list >"$work/topics"
require delete "$(grep -cx -- "$topic" "$work/topics")" = 0

# Once there is a user, everybody says who it is.
cat >"$work/login" <<END
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="$run" password="secret";
END
ask $configs --alter --entity-type users --entity-name "$run" \
    --add-config 'SCRAM-SHA-512=[iterations=8192,password=secret]' | expect user 'Completed updating config'
ask $configs --command-config "$work/login" --describe --entity-type users | expect users "$run.*iterations=8192"
ask $tools.TopicCommand --command-config "$work/login" --create --topic "$topic-user" | expect login 'Created topic'
# Whoever deletes itself is told so, and then is in no more: what comes next comes without a login.
ask $configs --command-config "$work/login" --alter --entity-type users --entity-name "$run" \
    --delete-config SCRAM-SHA-512 | expect delete-user 'Completed updating config'
ask $tools.TopicCommand --list | expect gone "$topic-user"
