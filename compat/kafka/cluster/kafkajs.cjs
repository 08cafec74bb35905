// A producer and a group's copy job on KafkaJS, with its defaults.
//
//     node kafkajs.cjs [idempotent] SERVERS SOURCE TARGET
//
// `idempotent` makes the producers idempotent, without which one may write a record twice. What the lines
// mean is in report.py.

const { Kafka, logLevel } = require('kafkajs');

const PARTITIONS = 3;
const PAUSE_MS = 5;
const END_LIMIT_MS = 120_000;

const [servers, source, target] = process.argv.slice(-3);
const options = process.argv.slice(2, -3);
const writing = options.includes('idempotent') ? { idempotent: true } : {};
const kafka = new Kafka({ brokers: servers.split(','), logLevel: logLevel.NOTHING });
const acked = new Set();
const copied = new Set();
let isOver = false;
process.stdin.resume();
process.stdin.on('end', () => { isOver = true; });

const say = (line) => console.log(line.replaceAll('\n', ' '));
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const told = (error) => `${error.name}: ${error.message}`;

async function produce() {
  const producer = kafka.producer(writing);
  await producer.connect();
  for (let number = 0; !isOver; number += 1) {
    const messages = [{ value: `${number}`, partition: number % PARTITIONS }];
    try {
      await producer.send({ topic: source, messages });
      acked.add(number);
      say(`acked ${number}`);
    } catch (error) {
      say(`error record ${number}: ${told(error)}`);
    }
    await sleep(PAUSE_MS);
  }
  await producer.disconnect();
}

async function copy() {
  const producer = kafka.producer(writing);
  await producer.connect();
  const consumer = kafka.consumer({ groupId: `copies-${target}` });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    // With `restart`, the client begins again by itself.
    say(`${payload.restart ? 'notice' : 'error'} consumer: ${told(payload.error)}`);
  });
  await consumer.connect();
  await consumer.subscribe({ topic: source, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset }) => {
      const { partition } = batch;
      const messages = batch.messages.map(({ value }) => ({ value, partition }));
      await producer.send({ topic: target, messages });
      resolveOffset(batch.lastOffset());
      const offset = (BigInt(batch.lastOffset()) + 1n).toString();
      await consumer.commitOffsets([{ topic: source, partition, offset }]);
      for (const { value } of batch.messages) copied.add(Number(value.toString()));
      say(`copied ${copied.size}`);
    },
  });
  return async () => {
    const deadline = Date.now() + END_LIMIT_MS;
    const missing = () => [...acked].filter((it) => !copied.has(it)).length;
    while (missing() > 0 && Date.now() < deadline) await sleep(50);
    if (missing() > 0) say(`error copy: ${missing()} records are not copied`);
    await consumer.disconnect();
    await producer.disconnect();
  };
}

async function ask() {
  const producer = kafka.producer({
    transactionalId: `transactions-${target}`,
    maxInFlightRequests: 1,
    idempotent: true,
  });
  try {
    await producer.connect();
    await producer.transaction();
    say('error transaction: it is not refused');
  } catch (error) {
    say(`refused ${told(error)}`);
  }
}

async function main() {
  const end = await copy();
  await produce();
  await end();
  await ask();
  process.exit(0);
}

main().catch((error) => {
  say(`error ${told(error)}`);
  process.exit(1);
});
