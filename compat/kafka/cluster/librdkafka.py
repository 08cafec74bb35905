"""A producer and a group's copy job on librdkafka, with its defaults.

    librdkafka.py [idempotent] SERVERS SOURCE TARGET

`idempotent` sets `enable.idempotence`, without which a producer may write a record twice.
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer

from report import END_LIMIT_S, PARTITIONS, PAUSE_S, Report


def main():
    *options, servers, source, target = sys.argv[1:]
    report = Report()

    def note(error):
        # All others are handled by the client.
        if error.fatal():
            report.error("client", KafkaException(error))
        else:
            report.say(f"notice {error.name()}")

    # The log on the standard error names the same events.
    common = {"bootstrap.servers": servers, "error_cb": note, "log_level": 2}
    writing = {"enable.idempotence": True} if "idempotent" in options else {}

    def produce(report):
        producer = Producer({**common, **writing})

        def delivered(number):
            def done(error, _):
                if error is None:
                    report.acked(number)
                else:
                    report.error(f"record {number}", KafkaException(error))

            return done

        number = 0
        while not report.is_over.is_set():
            value = str(number).encode()
            partition = number % PARTITIONS
            producer.produce(source, value, partition=partition, on_delivery=delivered(number))
            number += 1
            producer.poll(PAUSE_S)
        left = producer.flush(END_LIMIT_S)
        if left:
            report.say(f"error produce: {left} records are not acknowledged")

    def copy(report):
        reading = {"group.id": f"copies-{target}", "auto.offset.reset": "earliest"}
        consumer = Consumer({**common, **reading, "enable.auto.commit": False})
        producer = Producer({**common, **writing})

        def delivered(error, _):
            if error is not None:
                report.error("copy", KafkaException(error))

        consumer.subscribe([source])
        while not report.is_all_copied():
            numbers = []
            for message in consumer.consume(500, 0.2):
                if message.error():
                    report.error("read", KafkaException(message.error()))
                    continue
                value = message.value()
                producer.produce(
                    target, value, partition=message.partition(), on_delivery=delivered
                )
                numbers.append(int(value))
            if numbers:
                producer.flush()
                consumer.commit(asynchronous=False)
                report.copied(numbers)
        consumer.close()

    report.run(produce, copy)

    def begin():
        producer = Producer({**common, "transactional.id": f"transactions-{target}"})
        producer.init_transactions(END_LIMIT_S)

    report.ask_for_transaction(begin, KafkaException)


if __name__ == "__main__":
    main()
