// What KafkaJS does with its defaults.
//
//     node kafkajs.cjs HOST:PORT

const { randomBytes } = require('node:crypto');
const { CompressionTypes, Kafka, logLevel } = require('kafkajs');

const fresh = (name) => `${name}-${randomBytes(6).toString('hex')}`;

function check(condition, what) {
  if (!condition) throw new Error(what);
}

async function consume(kafka, topic, count, groupId) {
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const found = new Set();
  await new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`${found.size} of ${count}`)), 60_000);
    consumer
      .run({
        eachMessage: async ({ message }) => {
          found.add(message.value.toString());
          if (found.size === count) {
            clearTimeout(limit);
            resolve();
          }
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return found;
}

async function main(broker) {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.ERROR });
  const admin = kafka.admin();
  await admin.connect();
  const topic = fresh('js');
  await admin.createTopics({ topics: [{ topic, numPartitions: 2 }] });
  check((await admin.listTopics()).includes(topic), 'it is listed');
  console.log('ok admin');

  const producer = kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: 500 }, (_, number) => ({
    key: `key ${number}`,
    value: `value ${number}`,
  }));
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const told = await producer.send({ topic, compression, messages });
    check(told.every(({ errorCode }) => errorCode === 0), JSON.stringify(told));
  }
  await producer.disconnect();
  console.log('ok produce');

  const group = fresh('group');
  check((await consume(kafka, topic, 500, group)).size === 500, 'all of them');
  const offsets = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  const committed = offsets[0].partitions.reduce((sum, { offset }) => sum + Number(offset), 0);
  check(committed >= 500, `${committed} committed`);
  console.log('ok group');

  const once = kafka.producer({ transactionalId: fresh('tx'), maxInFlightRequests: 1, idempotent: true });
  await once.connect();
  for (const ends of ['commit', 'abort']) {
    const transaction = await once.transaction();
    await transaction.send({ topic: `${topic}-tx`, messages: [{ value: ends }] });
    await transaction[ends]();
  }
  await once.disconnect();
  const kept = await consume(kafka, `${topic}-tx`, 1, fresh('group'));
  check(kept.has('commit'), 'what was committed');
  console.log('ok transactions');

  await admin.deleteTopics({ topics: [topic] });
  check(!(await admin.listTopics()).includes(topic), 'it is gone');
  await admin.disconnect();
}

main(process.argv[2]).catch((error) => {
  console.error(`failed: ${error.stack}`);
  process.exit(1);
});
