"""A producer and a group's copy job on kafka-python, with its defaults.

    pure_python.py SERVERS SOURCE TARGET
"""

import sys
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaConnectionError, KafkaError

from report import END_LIMIT_S, PARTITIONS, PAUSE_S, Report


def commit(consumer, report):
    """Commits, and again if the client could not refresh its metadata.

    kafka-python lets `commit` fail if it looks for the coordinator and asks a broker that has just ended. It
    does so with brokers of Apache Kafka, too. The error is one that may be repeated.
    """
    while True:
        try:
            return consumer.commit()
        except KafkaConnectionError as error:
            report.say(f"notice commit repeated by the application: {error}")


def main():
    servers, source, target = sys.argv[1:]
    servers = servers.split(",")
    report = Report()

    def produce(report):
        producer = KafkaProducer(bootstrap_servers=servers)
        number = 0
        while not report.is_over.is_set():
            value = str(number).encode()
            sent = producer.send(source, value, partition=number % PARTITIONS)
            sent.add_callback(lambda _, number=number: report.acked(number))
            sent.add_errback(lambda error, number=number: report.error(f"record {number}", error))
            number += 1
            time.sleep(PAUSE_S)
        producer.flush(END_LIMIT_S)
        producer.close()

    def copy(report):
        consumer = KafkaConsumer(
            source,
            bootstrap_servers=servers,
            group_id=f"copies-{target}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        producer = KafkaProducer(bootstrap_servers=servers)
        while not report.is_all_copied():
            read = [it for some in consumer.poll(200).values() for it in some]
            sent = [producer.send(target, it.value, partition=it.partition) for it in read]
            producer.flush()
            for one in sent:
                one.get(0)
            if read:
                commit(consumer, report)
                report.copied(int(it.value) for it in read)
        consumer.close()

    report.run(produce, copy)

    def begin():
        name = f"transactions-{target}"
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id=name)
        producer.init_transactions()

    report.ask_for_transaction(begin, KafkaError)


if __name__ == "__main__":
    main()
