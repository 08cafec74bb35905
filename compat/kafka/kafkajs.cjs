// What KafkaJS does with its defaults.
//
//     node kafkajs.cjs HOST:PORT

const { randomBytes } = require('node:crypto');
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs');

const PATIENCE_MS = 60_000;
const PART_LIMIT_MS = 180_000;

const fresh = (name) => `${name}-${randomBytes(6).toString('hex')}`;

function check(condition, what) {
  if (!condition) throw new Error(what);
}

// Waits until that is so.
async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    check(Date.now() < deadline, what());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// A member of a group that reads a topic: what it has found, and how much of the topic it has been given.
async function member(kafka, topic, groupId, settings = {}) {
  const consumer = kafka.consumer({ groupId, ...settings });
  const found = [];
  const it = { consumer, found, share: 0 };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    it.share = payload.memberAssignment[topic]?.length ?? 0;
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      found.push(message.value.toString());
    },
  });
  return it;
}

async function produce(kafka, topic) {
  const producer = kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: 500 }, (_, number) => ({
    key: `key ${number}`,
    value: `value ${number}`,
    headers: { number: `${number}` },
  }));
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const told = await producer.send({ topic, compression, messages });
    check(told.every(({ errorCode }) => errorCode === 0), JSON.stringify(told));
  }
  await producer.disconnect();
}

async function idempotent(kafka, topic) {
  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  for (let round = 0; round < 20; round += 1) {
    const told = await producer.send({ topic, messages: [{ value: `${round}` }] });
    check(told[0].errorCode === 0 && told[0].baseOffset === `${round}`, JSON.stringify(told));
  }
  await producer.disconnect();
}

// A group shares what there is, shares anew when somebody comes or goes, and goes on where it was.
async function group(kafka, admin, topic) {
  const groupId = fresh('group');
  const first = await member(kafka, topic, groupId);
  await until(() => first.found.length >= 1000, () => `${first.found.length} of 1000`);
  const second = await member(kafka, topic, groupId);
  const shares = () => [first.share, second.share];
  await until(() => shares().join() === '1,1', () => `shares ${shares()}`);
  const described = await admin.describeGroups([groupId]);
  check(described.groups[0].members.length === 2, JSON.stringify(described));
  await second.consumer.disconnect();
  await until(() => first.share === 2, () => `shares ${shares()}`);
  await first.consumer.disconnect();
  check(new Set(first.found).size === 500, 'all of them');
  const offsets = await admin.fetchOffsets({ groupId, topics: [topic] });
  const committed = offsets[0].partitions.reduce((sum, { offset }) => sum + Number(offset), 0);
  check(committed === 1000, `${committed} committed`);
  await admin.resetOffsets({ groupId, topic, earliest: true });
  await admin.deleteGroups([groupId]);
  const { groups } = await admin.listGroups();
  check(!groups.some((it) => it.groupId === groupId), 'the group is gone');
}

async function transactions(kafka, topic) {
  const producer = kafka.producer({
    transactionalId: fresh('tx'),
    maxInFlightRequests: 1,
    idempotent: true,
  });
  await producer.connect();
  const groupId = fresh('group');
  for (const ends of ['abort', 'commit']) {
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: [{ value: ends }] });
    const partitions = [{ partition: 0, offset: '1' }];
    await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions }] });
    await transaction[ends]();
  }
  await producer.disconnect();
  const reader = await member(kafka, topic, fresh('group'));
  await until(() => reader.found.length > 0, () => 'nothing was committed');
  await reader.consumer.disconnect();
  check(reader.found.join() === 'commit', `read ${reader.found}`);
}

async function administer(admin, topic) {
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '1000000' }] }],
  });
  const configs = await admin.describeConfigs({ resources: [resource], includeSynonyms: false });
  const retention = configs.resources[0].configEntries.find((it) => it.configName === 'retention.ms');
  check(retention.configValue === '1000000', JSON.stringify(retention));
  await admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] });
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] });
  check(metadata.topics[0].partitions.length === 4, 'grown');
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '1' }] });
  const offsets = await admin.fetchTopicOffsets(topic);
  check(offsets.find(({ partition }) => partition === 0).low === '1', JSON.stringify(offsets));
  const cluster = await admin.describeCluster();
  check(cluster.brokers.length === 1, JSON.stringify(cluster));
  await admin.deleteTopics({ topics: [topic] });
  check(!(await admin.listTopics()).includes(topic), 'it is gone');
}

async function main(broker) {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const topic = fresh('js');
  await admin.createTopics({
    topics: [
      { topic, numPartitions: 2 },
      { topic: `${topic}-once`, numPartitions: 1 },
      { topic: `${topic}-tx`, numPartitions: 1 },
    ],
  });
  check((await admin.listTopics()).includes(topic), 'it is listed');
  const parts = {
    produce: () => produce(kafka, topic),
    idempotent: () => idempotent(kafka, `${topic}-once`),
    group: () => group(kafka, admin, topic),
    transactions: () => transactions(kafka, `${topic}-tx`),
    admin: () => administer(admin, topic),
  };
  for (const [name, run] of Object.entries(parts)) {
    const late = setTimeout(() => {
      console.error(`failed: ${name} is not done in time`);
      process.exit(1);
    }, PART_LIMIT_MS);
    await run();
    clearTimeout(late);
    console.log(`ok ${name}`);
  }
  await admin.disconnect();
}

main(process.argv[2]).catch((error) => {
  console.error(`failed: ${error.stack}`);
  process.exit(1);
});
