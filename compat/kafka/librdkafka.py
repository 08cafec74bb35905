"""What a client on librdkafka does, with its defaults: confluent-kafka against a broker.

    librdkafka.py HOST:PORT [PART...]

Each part makes topics and groups of its own, and says `ok PART` when everything was as it should be.
"""

import faulthandler
import sys
import threading
import time
import uuid

from confluent_kafka import (
    Consumer,
    KafkaException,
    OFFSET_BEGINNING,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

PATIENCE_S = 60
PART_LIMIT_S = 180


def fresh(name):
    """A name that nobody has used before."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


def check(condition, what):
    """Ends the part if something is not as it should be."""
    if not condition:
        raise AssertionError(what)


class Broker:
    """Where the broker is, and what everybody needs of it."""

    def __init__(self, address):
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address})

    def producer(self, **settings):
        return Producer({"bootstrap.servers": self.address, **settings})

    def consumer(self, group, **settings):
        return Consumer({
            "bootstrap.servers": self.address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **settings,
        })

    def topic(self, name, partitions=1, **config):
        """A new topic."""
        name = fresh(name)
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        made[name].result(PATIENCE_S)
        return name

    def produce(self, topic, count, **settings):
        """Produces so many records, and returns their places by value."""
        producer, places, failed = self.producer(**settings), {}, []

        def told(error, message):
            if error is None:
                places[message.value()] = (message.partition(), message.offset())
            else:
                failed.append(error)

        for number in range(count):
            value = f"value {number}".encode()
            producer.produce(topic, value, key=f"key {number % 100}".encode(), on_delivery=told)
            producer.poll(0)
        left = producer.flush(PATIENCE_S)
        check(left == 0 and not failed, f"{left} not delivered, failed: {failed[:3]}")
        check(len(places) == count, f"{len(places)} of {count} acknowledged")
        check(len(set(places.values())) == count, "two records at one place")
        return places

    def read(self, consumer, count, quiet_s=0):
        """Reads until there are so many, and then what comes within a moment."""
        found, deadline = [], time.monotonic() + PATIENCE_S
        while len(found) < count:
            check(time.monotonic() < deadline, f"{len(found)} of {count} arrived")
            message = consumer.poll(1)
            if message is not None:
                check(message.error() is None, message.error())
                found.append(message)
        if quiet_s:
            message = consumer.poll(quiet_s)
            check(message is None, f"one too many: {message and message.value()}")
        return found


def produce(broker):
    """Every compression arrives as it was sent."""
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = broker.topic("produce", 3)
        places = broker.produce(topic, 1000, **{"compression.type": compression, "linger.ms": 20})
        consumer = broker.consumer(fresh("group"))
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(3)])
        found = broker.read(consumer, len(places), quiet_s=0.2)
        check({it.value(): (it.partition(), it.offset()) for it in found} == places, compression)
        consumer.close()


def auto_create(broker):
    """A topic that nobody has made is made with three partitions."""
    topic = fresh("auto")
    broker.produce(topic, 10)
    check(len(broker.admin.list_topics(topic, PATIENCE_S).topics[topic].partitions) == 3, "three")


def idempotent(broker):
    """An idempotent producer is given a number, and nothing is there twice."""
    topic = broker.topic("idempotent")
    places = broker.produce(topic, 5000, **{"enable.idempotence": True})
    check(max(offset for _, offset in places.values()) == 4999, "dense")


def offsets(broker):
    """Where a partition begins, ends, and was at a time."""
    topic = broker.topic("offsets")
    broker.produce(topic, 100)
    partition = TopicPartition(topic, 0)
    consumer = broker.consumer(fresh("group"))
    check(consumer.get_watermark_offsets(partition, PATIENCE_S) == (0, 100), "watermarks")
    at = consumer.offsets_for_times([TopicPartition(topic, 0, 1)], PATIENCE_S)[0].offset
    check(at == 0, f"the first record at {at}")
    never = int(time.time() * 1000) + 3_600_000
    at = consumer.offsets_for_times([TopicPartition(topic, 0, never)], PATIENCE_S)[0].offset
    check(at in (-1, 100), f"a record of the future at {at}")
    newest = broker.admin.list_offsets({partition: OffsetSpec.max_timestamp()})
    check(0 <= newest[partition].result(PATIENCE_S).offset < 100, "the newest")
    gone = broker.admin.delete_records([TopicPartition(topic, 0, 40)])
    check(gone[partition].result(PATIENCE_S).low_watermark == 40, "deleted")
    check(consumer.get_watermark_offsets(partition, PATIENCE_S) == (40, 100), "what is left")
    consumer.close()


def long_poll(broker):
    """Whoever waits for a record has it soon after it was produced."""
    topic = broker.topic("wait")
    consumer = broker.consumer(fresh("group"), **{"fetch.wait.max.ms": 20_000})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    check(consumer.poll(1) is None, "nothing is there yet")
    started = time.monotonic()
    broker.produce(topic, 1)
    broker.read(consumer, 1)
    check(time.monotonic() - started < 10, "woken, rather than asked again")
    consumer.close()


def group(broker):
    """A group shares what there is, goes on where it was, and shares anew when somebody comes."""
    topic, name = broker.topic("group", 4), fresh("group")
    broker.produce(topic, 1000)
    first = broker.consumer(name, **{"enable.auto.commit": False})
    first.subscribe([topic])
    found = broker.read(first, 1000)
    first.commit(asynchronous=False)
    second = broker.consumer(name, **{"enable.auto.commit": False})
    second.subscribe([topic])
    deadline = time.monotonic() + PATIENCE_S
    while not (len(first.assignment()) == 2 and len(second.assignment()) == 2):
        check(time.monotonic() < deadline, "the second one gets its share")
        check(first.poll(0.1) is None and second.poll(0.1) is None, "nothing is read again")
    members = broker.admin.describe_consumer_groups([name])[name].result(PATIENCE_S).members
    check(len(members) == 2, f"{len(members)} members")
    broker.produce(topic, 100)
    new, deadline = 0, time.monotonic() + PATIENCE_S
    while new < 100:
        check(time.monotonic() < deadline, f"{new} of 100")
        new += sum(it.poll(0.1) is not None for it in (first, second))
    first.close()
    second.close()
    listed = broker.admin.list_consumer_groups().result(PATIENCE_S).valid
    check(name in [it.group_id for it in listed], "it is listed")
    check(len({it.value() for it in found}) == 1000, "all of them")
    broker.admin.delete_consumer_groups([name])[name].result(PATIENCE_S)


def cooperative(broker):
    """A cooperative group moves only what has to move."""
    topic, name = broker.topic("cooperative", 4), fresh("group")
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    revoked = []
    first = broker.consumer(name, **settings)
    first.subscribe([topic], on_revoke=lambda _, gone: revoked.extend(gone))
    deadline = time.monotonic() + PATIENCE_S
    while len(first.assignment()) < 4:
        check(time.monotonic() < deadline, "everything is its own")
        first.poll(0.1)
    second = broker.consumer(name, **settings)
    second.subscribe([topic])
    while len(second.assignment()) < 2 or len(first.assignment()) != 2:
        check(time.monotonic() < deadline, "half of it")
        first.poll(0.1)
        second.poll(0.1)
    check(len(revoked) == 2, f"{len(revoked)} were taken away")
    first.close()
    second.close()


def static_member(broker):
    """A member that comes back under its name has what it had, without a rebalance."""
    topic, name = broker.topic("static", 2), fresh("group")
    settings = {"group.instance.id": "one", "session.timeout.ms": 30_000}
    for _ in range(2):
        member = broker.consumer(name, **settings)
        member.subscribe([topic])
        deadline = time.monotonic() + PATIENCE_S
        while len(member.assignment()) < 2:
            check(time.monotonic() < deadline, "its partitions")
            member.poll(0.1)
        member.close()
    described = broker.admin.describe_consumer_groups([name])[name].result(PATIENCE_S)
    check([it.group_instance_id for it in described.members] == ["one"], "it is still a member")


def transactions(broker):
    """What is committed is read, and what is aborted is not."""
    topic = broker.topic("transactions")
    producer = broker.producer(**{"transactional.id": fresh("producer")})
    producer.init_transactions(PATIENCE_S)
    for round_, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, f"{round_} {number}".encode())
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)
    for level, count in (("read_committed", 20), ("read_uncommitted", 30)):
        consumer = broker.consumer(fresh("group"), **{"isolation.level": level})
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = broker.read(consumer, count, quiet_s=0.5)
        is_aborted = any(it.value().startswith(b"1 ") for it in found)
        check(is_aborted == (level == "read_uncommitted"), level)
        consumer.close()


def fencing(broker):
    """Whoever takes a transactional id fences the one before."""
    topic, name = broker.topic("fencing"), fresh("producer")
    first = broker.producer(**{"transactional.id": name})
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    first.produce(topic, b"lost")
    first.flush(PATIENCE_S)
    second = broker.producer(**{"transactional.id": name})
    second.init_transactions(PATIENCE_S)
    try:
        first.commit_transaction(PATIENCE_S)
        raise AssertionError("the first one commits")
    except KafkaException as error:
        check(error.args[0].fatal(), error)
    second.begin_transaction()
    second.produce(topic, b"kept")
    second.commit_transaction(PATIENCE_S)
    consumer = broker.consumer(fresh("group"), **{"isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = broker.read(consumer, 1, quiet_s=0.5)
    check([it.value() for it in found] == [b"kept"], "what was not committed is not there")
    consumer.close()


def exactly_once(broker):
    """A consumer that writes in transactions what it has read, two of them at once."""
    source, target, name = broker.topic("source", 4), broker.topic("target", 2), fresh("group")
    count = len(broker.produce(source, 2000))
    stop = threading.Event()

    def copy():
        consumer = broker.consumer(
            name, **{"enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        consumer.subscribe([source])
        producer = broker.producer(**{"transactional.id": fresh("copy")})
        producer.init_transactions(PATIENCE_S)
        while not stop.is_set():
            messages = consumer.consume(100, 0.2)
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                check(message.error() is None, message.error())
                producer.produce(target, message.value(), key=message.key())
            try:
                positions = consumer.position(consumer.assignment())
                metadata = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction(positions, metadata, PATIENCE_S)
                producer.commit_transaction(PATIENCE_S)
            except KafkaException as error:
                check(error.args[0].txn_requires_abort(), error)
                producer.abort_transaction(PATIENCE_S)
                committed = consumer.committed(consumer.assignment(), PATIENCE_S)
                for partition in committed:
                    partition.offset = max(partition.offset, 0)
                    consumer.seek(partition)
        consumer.close()

    copiers = [threading.Thread(target=copy) for _ in range(2)]
    for copier in copiers:
        copier.start()
        time.sleep(1)
    reader = broker.consumer(fresh("group"), **{"isolation.level": "read_committed"})
    reader.assign([TopicPartition(target, index, OFFSET_BEGINNING) for index in range(2)])
    try:
        found = broker.read(reader, count, quiet_s=2)
    finally:
        stop.set()
        for copier in copiers:
            copier.join()
    check(len({it.value() for it in found}) == count, "each of them once")
    reader.close()


def admin(broker):
    """Topics are described, configured, grown and deleted."""
    topic = broker.topic("admin", 2, **{"retention.ms": "1000000"})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def config(name):
        return broker.admin.describe_configs([resource])[resource].result(PATIENCE_S)[name]

    check(config("retention.ms").value == "1000000" and not config("retention.ms").is_default, "set")
    check(config("compression.type").value == "producer", "default")
    entry = ConfigEntry(
        "retention.bytes", "5000", incremental_operation=AlterConfigOpType.SET
    )
    changing = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    broker.admin.incremental_alter_configs([changing])[changing].result(PATIENCE_S)
    check(config("retention.bytes").value == "5000", "changed")
    check(config("retention.ms").value == "1000000", "and the other stays")
    broker.admin.create_partitions([NewPartitions(topic, 5)])[topic].result(PATIENCE_S)
    partitions = broker.admin.list_topics(topic, PATIENCE_S).topics[topic].partitions
    check(len(partitions) == 5, "grown")
    broker.admin.delete_topics([topic])[topic].result(PATIENCE_S)
    check(topic not in broker.admin.list_topics(timeout=PATIENCE_S).topics, "deleted")
    described = broker.admin.describe_cluster().result(PATIENCE_S)
    check(len(described.nodes) == 1, "one broker")


def consumer_protocol(broker):
    """A consumer of the protocol of KIP-848 is told that it is not served."""
    topic = broker.topic("protocol")
    consumer = broker.consumer(fresh("group"), **{"group.protocol": "consumer"})
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    check(message is not None and message.error() is not None, "an error")
    check("API version not supported: ConsumerGroupHeartbeat" in str(message.error()), message.error())
    consumer.close()


PARTS = {
    it.__name__: it
    for it in (
        produce,
        auto_create,
        idempotent,
        offsets,
        long_poll,
        group,
        cooperative,
        static_member,
        transactions,
        fencing,
        exactly_once,
        consumer_protocol,
        admin,
    )
}


def main():
    """Runs the parts that are named, or all, and fails if one of them does."""
    address, *names = sys.argv[1:]
    broker, failed = Broker(address), []
    for name in names or PARTS:
        started = time.monotonic()
        # Says where everybody is, and ends the process.
        faulthandler.dump_traceback_later(PART_LIMIT_S, exit=True)
        try:
            PARTS[name](broker)
            print(f"ok {name} {time.monotonic() - started:.1f} s", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f"failed {name}: {type(error).__name__}: {error}", flush=True)
            failed.append(name)
        faulthandler.cancel_dump_traceback_later()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
