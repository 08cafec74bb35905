"""A producer and a reader that run while nodes fail, and the comparison with the final log.

Both are librdkafka clients with its defaults, but for idempotence, which makes "once" checkable.
"""

import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "ledger"
PARTITIONS = 6
# Records between two pauses of the producer.
BURST = 20
PAUSE_S = 0.002
READ_LIMIT_S = 120

# Refused connections are expected here, and errors are counted.
QUIET = {"log_level": 2}
FLUSH_LIMIT_S = 150


class Load:
    """Records 0, 1, 2… in turn on all partitions, and a group that reads them meanwhile."""

    def __init__(self, servers, pause_s=PAUSE_S):
        self.servers, self.pause_s = servers, pause_s
        self.sent = 0
        self.acked = {}
        self.ack_times = []
        self.failed = {}
        self.read = []
        self.errors = {}
        self.is_over = threading.Event()
        admin = AdminClient({"bootstrap.servers": servers, **QUIET})
        topic = NewTopic(TOPIC, PARTITIONS, 3)
        admin.create_topics([topic])[TOPIC].result(timeout=60)
        self.admin = admin
        self.threads = [threading.Thread(target=it) for it in (self.produce, self.follow)]
        for thread in self.threads:
            thread.start()

    def note(self, error):
        name = error.name()
        self.errors[name] = self.errors.get(name, 0) + 1

    def produce(self):
        settings = {"bootstrap.servers": self.servers, "enable.idempotence": True, **QUIET}
        producer = Producer({**settings, "error_cb": self.note, "message.timeout.ms": 120_000})

        def delivered(number):
            def done(error, message):
                if error:
                    self.failed[number] = error.name()
                else:
                    self.acked[number] = (message.partition(), message.offset())
                    self.ack_times.append(time.monotonic())

            return done

        while not self.is_over.is_set():
            number = self.sent
            try:
                partition = number % PARTITIONS
                value = str(number).encode()
                producer.produce(TOPIC, value, partition=partition, on_delivery=delivered(number))
                self.sent += 1
            except BufferError:
                producer.poll(0.05)
            producer.poll(0)
            if number % BURST == 0:
                time.sleep(self.pause_s)
        producer.flush(FLUSH_LIMIT_S)

    def follow(self):
        settings = {"bootstrap.servers": self.servers, "group.id": "followers", **QUIET}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "error_cb": self.note})
        consumer.subscribe([TOPIC])
        while not self.is_over.is_set():
            for message in consumer.consume(500, 0.2):
                if message.error():
                    self.note(message.error())
                else:
                    place = (message.partition(), message.offset())
                    self.read.append((*place, int(message.value())))
        consumer.close()

    def leader(self):
        """Returns the node that leads partition 0, as soon as a node knows it."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                topic = self.admin.list_topics(TOPIC, timeout=5).topics[TOPIC]
                if topic.partitions and topic.partitions[0].leader > 0:
                    return topic.partitions[0].leader
            except KafkaException:
                pass
            time.sleep(0.1)
        raise TimeoutError("no node knows a leader")

    def first_ack_after(self, moment):
        """Waits for an acknowledgement after a moment, and returns the seconds between them."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.ack_times and self.ack_times[-1] > moment:
                return min(it for it in self.ack_times if it > moment) - moment
            time.sleep(0.01)
        raise TimeoutError("nothing was acknowledged for 60 s")

    def longest_pause(self, begin, end):
        """Returns the longest time without an acknowledgement between two moments."""
        times = [it for it in self.ack_times if begin <= it <= end]
        return max(b - a for a, b in zip([begin, *times], [*times, end]))

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def final_log(servers):
    """Reads all records: for each partition, the numbers in the order of their offsets."""
    settings = {"bootstrap.servers": servers, "group.id": "reader", **QUIET}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    partitions = [TopicPartition(TOPIC, it, 0) for it in range(PARTITIONS)]
    ends = {it.partition: consumer.get_watermark_offsets(it, timeout=60)[1] for it in partitions}
    consumer.assign(partitions)
    log = {it: [] for it in ends}
    faults = []
    deadline = time.monotonic() + READ_LIMIT_S
    while any(len(log[it]) < ends[it] for it in ends):
        if time.monotonic() > deadline:
            missing = sum(ends[it] - len(log[it]) for it in ends)
            faults.append(f"{missing} records could not be read in {READ_LIMIT_S} s")
            break
        for message in consumer.consume(1000, 1.0):
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    faults.append(f"reading: {message.error()}")
                continue
            records = log[message.partition()]
            if message.offset() != len(records):
                faults.append(f"offset {message.offset()} follows {len(records) - 1}")
            records.append(int(message.value()))
    consumer.close()
    return log, faults


def compare(load, log):
    """Returns what contradicts the promises."""
    faults = []
    at = lambda place: log[place[0]][place[1]] if place[1] < len(log[place[0]]) else None
    lost = [number for number, place in load.acked.items() if at(place) != number]
    if lost:
        faults.append(f"{len(lost)} acknowledged records are not at their offsets: {lost[:5]}")
    phantoms = [it for it in load.read if at(it[:2]) != it[2]]
    if phantoms:
        faults.append(f"{len(phantoms)} records were read and are not there: {phantoms[:5]}")
    for partition, records in log.items():
        if records != sorted(set(records)):
            faults.append(f"partition {partition} has doubled or reordered records")
    read = {}
    for partition, offset, _ in load.read:
        if offset != read.get(partition, -1) + 1:
            faults.append(f"the group read offset {offset} after {read.get(partition)}")
            break
        read[partition] = offset
    if not load.acked or not load.read:
        faults.append("nothing was acknowledged, or nothing was read")
    return faults
