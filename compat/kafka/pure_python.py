"""What kafka-python does with its defaults: no version of the broker is told to it.

    pure_python.py HOST:PORT
"""

import sys
import uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

PATIENCE_S = 60


def check(condition, what):
    """Ends the run if something is not as it should be."""
    if not condition:
        raise AssertionError(what)


def main():
    """Produces, consumes alone and in a group, and describes."""
    address, topic = sys.argv[1], f"python-{uuid.uuid4().hex[:12]}"
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    check(topic in admin.list_topics(), "it is listed")
    print("ok admin", flush=True)

    producer = KafkaProducer(bootstrap_servers=address)
    sent = [producer.send(topic, b"value %d" % it, key=b"key %d" % it) for it in range(1000)]
    places = {(it.get(PATIENCE_S).partition, it.get(PATIENCE_S).offset) for it in sent}
    check(len(places) == 1000, f"{len(places)} places")
    print("ok produce", flush=True)

    group = f"group-{uuid.uuid4().hex[:12]}"
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    found = set()
    for message in consumer:
        found.add(message.value)
        if len(found) == 1000:
            break
    check(len(found) == 1000, f"{len(found)} of 1000")
    consumer.commit()
    partitions = [TopicPartition(topic, index) for index in range(2)]
    committed = sum(consumer.committed(it) or 0 for it in partitions)
    check(committed == 1000, f"{committed} committed")
    check(sum(consumer.end_offsets(partitions).values()) == 1000, "ends")
    check(sum(consumer.beginning_offsets(partitions).values()) == 0, "starts")
    consumer.close()
    print("ok group", flush=True)

    producer = KafkaProducer(bootstrap_servers=address, transactional_id=f"python-{group}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"committed").get(PATIENCE_S)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send(topic, b"aborted").get(PATIENCE_S)
    producer.abort_transaction()
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=3_000,
    )
    values = [message.value for message in consumer]
    check(len(values) == 1001 and b"committed" in values, f"{len(values)} of 1001")
    print("ok transactions", flush=True)
    admin.close()


if __name__ == "__main__":
    main()
