"""What kafka-python does with its defaults: no version of the broker is told to it.

    pure_python.py HOST:PORT [PART...]

Each part makes topics and groups of its own, and says `ok PART` when everything was as it should be.
"""

import faulthandler
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic

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
        self.admin = KafkaAdminClient(bootstrap_servers=address)

    def topic(self, name, partitions=1):
        """A new topic."""
        name = fresh(name)
        self.admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])
        return name

    def producer(self, **settings):
        return KafkaProducer(bootstrap_servers=self.address, **settings)

    def consumer(self, topic, **settings):
        return KafkaConsumer(
            topic, bootstrap_servers=self.address, auto_offset_reset="earliest", **settings
        )

    def produce(self, topic, count, **settings):
        """Produces so many records, and returns their places by value."""
        producer = self.producer(**settings)
        values = [b"value %d" % it for it in range(count)]
        sent = [producer.send(topic, it, key=b"key of " + it) for it in values]
        told = [it.get(PATIENCE_S) for it in sent]
        producer.close()
        places = {value: (it.partition, it.offset) for value, it in zip(values, told)}
        check(len(set(places.values())) == count, f"{len(places)} places of {count}")
        return places


def read(consumer, count):
    """Reads until there are so many, and then what comes within a moment."""
    found, deadline = [], time.monotonic() + PATIENCE_S
    while len(found) < count:
        check(time.monotonic() < deadline, f"{len(found)} of {count} arrived")
        found += [it for some in consumer.poll(500).values() for it in some]
    check(not consumer.poll(500) and len(found) == count, f"{len(found)}, and not {count}")
    return found


def produce(broker):
    """What is produced is idempotent by default, and arrives where it was said to be."""
    for compression in (None, "gzip"):
        topic = broker.topic("produce", 2)
        places = broker.produce(topic, 1000, compression_type=compression)
        consumer = broker.consumer(topic)
        found = {it.value: (it.partition, it.offset) for it in read(consumer, 1000)}
        check(found == places, f"{compression}: they are elsewhere")
        consumer.close()


def idempotent(broker):
    """Nothing is there twice."""
    topic = broker.topic("idempotent")
    places = broker.produce(topic, 2000, enable_idempotence=True)
    check(max(offset for _, offset in places.values()) == 1999, "dense")


def group(broker):
    """A group shares what there is, shares anew when somebody comes or goes, and goes on where it was."""
    topic, name = broker.topic("group", 4), fresh("group")
    broker.produce(topic, 1000)
    first = broker.consumer(topic, group_id=name)
    read(first, 1000)
    first.commit()
    second = broker.consumer(topic, group_id=name)
    deadline = time.monotonic() + PATIENCE_S
    # Both at once: of a join that ends while nobody polls its member, the client knows nothing, and joins anew.
    with ThreadPoolExecutor(2) as pool:
        while not len(first.assignment()) == len(second.assignment()) == 2:
            check(time.monotonic() < deadline, "the second one gets its share")
            taken = list(pool.map(lambda it: it.poll(1000), (first, second)))
            check(not any(taken), "nothing is read again")
    partitions = [TopicPartition(topic, index) for index in range(4)]
    check(sum(first.committed(it) or 0 for it in partitions) == 1000, "committed")
    check(sum(first.end_offsets(partitions).values()) == 1000, "ends")
    check(sum(first.beginning_offsets(partitions).values()) == 0, "starts")
    times = first.offsets_for_times({partitions[0]: 1})
    check(times[partitions[0]].offset == 0, f"the first at {times}")
    second.close()
    while len(first.assignment()) < 4:
        check(time.monotonic() < deadline, "the first one gets everything")
        first.poll(100)
    broker.produce(topic, 100)
    read(first, 100)
    first.close()


def transactions(broker):
    """What is committed is read, and what is aborted is not."""
    topic = broker.topic("transactions")
    producer = broker.producer(transactional_id=fresh("transaction"))
    producer.init_transactions()
    for value in (b"first", b"aborted", b"last"):
        producer.begin_transaction()
        producer.send(topic, value).get(PATIENCE_S)
        if value == b"aborted":
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    for level, count in (("read_committed", 2), ("read_uncommitted", 3)):
        consumer = broker.consumer(topic, isolation_level=level)
        values = [it.value for it in read(consumer, count)]
        check((b"aborted" in values) == (count == 3), f"{level}: {values}")
        consumer.close()


def admin(broker):
    """Topics are listed, grown and deleted."""
    topic = broker.topic("admin", 2)
    check(topic in broker.admin.list_topics(), "it is listed")
    broker.admin.create_partitions({topic: NewPartitions(5)})
    described = broker.admin.describe_topics([topic])
    check(len(described[0]["partitions"]) == 5, f"grown: {described}")
    broker.admin.delete_topics([topic])
    check(topic not in broker.admin.list_topics(), "it is gone")


PARTS = {it.__name__: it for it in (produce, idempotent, group, transactions, admin)}


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
    broker.admin.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
