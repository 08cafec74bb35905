// Measures the console at a node with 10,000 agents, 100,000 conversations and 10,000 partitions:
// `node tools/scale.mjs PROGRAM [--part FRACTION] [--optimized]`.
//
// No answer may have more than 1 MB, and the requests of a page are bounded. The processor time that an
// open page costs the node is the difference to the time without pages, which is measured before the
// first page and after the last: the node's periodic work takes about as much as a page. Then fifty pages are open: the
// requests of recorded pages are repeated, each from another moment on. `--part 0.01` fills a hundredth.
// With `--optimized` the program must also stay within the shares of a core.

import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { readFileSync } from "node:fs";
import { subscribe } from "./native.mjs";
import { ANSWER_MAX, launch, open, shows } from "./page.mjs";
import { Api, World, until } from "./world.mjs";

const [program, ...rest] = process.argv.slice(2);
if (!program) throw new Error("the path of telpher is missing");
const part = rest.includes("--part") ? Number(rest[rest.indexOf("--part") + 1]) : 1;
const isOptimized = rest.includes("--optimized");

const AGENTS = Math.ceil(10_000 * part);
const CONVERSATIONS = Math.ceil(100_000 * part);
const WIDE = Math.ceil(5_000 * part);
const TOPICS = Math.ceil(50 * part);
const PARTITIONS = 100;
const MAILBOXES = Math.ceil(2_000 * part);

// Seconds of the measurement of a page.
const SECONDS = 20;
// Seconds of each measurement without pages.
const IDLE_SECONDS = 60;
// Most requests of a page before it is complete, and in ten seconds after that.
const FIRST_MAX = 40;
const TEN_SECONDS_MAX = 30;
// Shares of a core.
const ONE_PAGE_MAX = 0.01;
const FIFTY_PAGES_MAX = 0.25;
const OPEN_PAGES = 50;

const PAGES = [
  ["now", "#/now", "Disk sync"],
  ["agents", "#/agents", "big/fleet"],
  ["agents of a prefix", "#/agents?prefix=fleet/", "fleet/ns-00"],
  ["agents, last page", "#/agents?after=fleet/ns-88/agent-00000", "fleet/ns-89"],
  ["agent", "#/agents/fleet/ns-07/agent-00007", "Instances"],
  ["conversations", "#/conversations", "Load more"],
  ["conversation", "#/conversations/default/default/chat-7", "hello from 7"],
  ["topics", "#/topics", "topic-00"],
  ["topic of all partitions", "#/topics/topic/wide", "value-"],
  ["partitions", "#/topics/topic/wide?tab=partitions", "Committed end"],
  ["groups", "#/topics/groups", "readers"],
  ["group", "#/topics/groups/readers", "Committed"],
  ["quotas", "#/quotas/usage", "fleet/ns-"],
  ["mailboxes", "#/mailboxes", "worker-00000"],
  ["storage", "#/node", "Write amplification"],
  ["connections", "#/node/connections", "native"],
  ["metrics", "#/node/metrics?filter=journal", "telpher_journal_records_total"],
];

// Requests over few connections, many at a time.
class Bulk {
  constructor(base) {
    this.url = new URL(base);
    this.agent = new Agent({ keepAlive: true, maxSockets: 64 });
  }

  send({ method, path, headers = {}, body }) {
    return new Promise((resolve, reject) => {
      const options = { host: this.url.hostname, port: this.url.port, method, path, agent: this.agent, headers };
      const sent = request(options, (answer) => {
        let size = 0;
        answer.on("data", (piece) => (size += piece.length));
        answer.on("end", () => resolve({ status: answer.statusCode, size }));
        answer.on("error", reject);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  async json(method, path, value) {
    const body = JSON.stringify(value);
    const { status } = await this.send({ method, path, body, headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) } });
    assert.ok(status < 300, `${method} ${path}: ${status}`);
  }

  // Calls `one` for each number below `count`, 256 at a time.
  async each(count, one) {
    let next = 0;
    await Promise.all(Array.from({ length: Math.min(256, count) }, async () => {
      while (next < count) await one(next++);
    }));
  }
}

const padded = (number, width) => String(number).padStart(width, "0");

async function fill(world, node, bulk) {
  const names = Array.from({ length: AGENTS }, (_, index) => `fleet/ns-${padded(index % 100, 2)}/agent-${padded(index, 5)}`);
  const sockets = [];
  while (names.length > 0) sockets.push(await subscribe(node.native.replace("tcp://", ""), names.splice(0, 100)));
  console.log(`${AGENTS} agents on ${sockets.length} connections`);
  await bulk.each(CONVERSATIONS, (index) => bulk.json("POST", `/v1/conversations/chat-${index}/messages`, { messages: [{ role: "user", from: "alice", content: `hello from ${index}` }] }));
  console.log(`${CONVERSATIONS} conversations`);
  await bulk.json("POST", "/v1/topics", { name: "wide", partitions: WIDE });
  await bulk.each(TOPICS, (index) => bulk.json("POST", "/v1/topics", { name: `topic-${padded(index, 2)}`, partitions: PARTITIONS }));
  const batches = Math.ceil(WIDE / 500);
  const produce = (batch) => bulk.json("POST", "/v1/topics/wide/records", Array.from({ length: Math.min(500, WIDE - 500 * batch) }, (_, index) => ({ value: `value-${index}`, partition: 500 * batch + index })));
  for (let batch = 0; batch < batches; batch += 1) await produce(batch);
  await world.run(["-b", node.kafka, "-G", "readers", "-X", "auto.offset.reset=earliest", "-c", String(WIDE), "-q", "wide"], "kcat");
  for (let batch = 0; batch < batches; batch += 2) await produce(batch);
  console.log(`${WIDE + TOPICS * PARTITIONS} partitions`);
  await bulk.each(MAILBOXES, (index) => bulk.send({ method: "POST", path: `/v1/big/fleet/agents/worker-${padded(index, 5)}/write`, body: "x", headers: { "content-type": "text/plain", "content-length": 1 } }));
  await bulk.json("PUT", "/v1/policies", { limits: [{ name: "requests", match: "*/*/*", unit: "requests", capacity: 1, refill: "1/h" }], reason: "scale" });
  await bulk.each(Math.ceil(2_000 * part), async (index) => {
    const subject = `fleet/ns-${padded(index % 100, 2)}/agent-${padded(index, 5)}`;
    for (let times = 0; times < 2; times += 1) {
      const body = JSON.stringify({ subject, cost: { requests: 1 } });
      await bulk.send({ method: "POST", path: "/v1/take", body, headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) } });
    }
  });
  return sockets;
}

// Processor time of a process in seconds.
function processorTime(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
  // The kernel counts in hundredths.
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Runs `during` and waits for the end of the measurement; returns the processor time per second.
async function share(pid, seconds, during = () => undefined) {
  const [before, start] = [processorTime(pid), performance.now()];
  await Promise.all([during(), pause(1_000 * seconds)]);
  return (processorTime(pid) - before) / ((performance.now() - start) / 1_000);
}

const percent = (value) => `${(100 * value).toFixed(2)} %`;

const world = new World(program);
let browser;
const failures = [];
const check = (condition, message) => {
  if (condition) return;
  failures.push(message);
  console.log(`FAILED ${message}`);
};
try {
  const node = await world.serve("scale");
  const bulk = new Bulk(node.http);
  const sockets = await fill(world, node, bulk);
  const api = new Api(node);
  await until("the views have caught up", async () => (await api.ask("GET", "/v1/conversations?limit=1")).conversations.length === 1);
  const pid = node.child.pid;
  // The work of the fill ends: compaction and views.
  await until("the node is idle", async () => (await share(pid, 2)) < 0.05, 300_000);
  browser = await launch();
  const recorded = [];
  const costs = [];
  const measure = async ([name, hash, text]) => {
    const page = await open(browser, node.http, { hash });
    await shows(page, text);
    await page.waitForNetworkIdle({ idleTime: 500, concurrency: 2 });
    const first = page.traffic.answers.length;
    page.traffic.check(name);
    const before = new Set(page.traffic.requests.keys());
    const start = performance.now();
    const cost = await share(pid, SECONDS);
    const took = (performance.now() - start) / 1_000;
    const requests = [...page.traffic.requests].filter(([id]) => !before.has(id)).map(([, one]) => one);
    const bytes = requests.reduce((sum, one) => sum + one.size, 0);
    page.traffic.check(name);
    console.log(`${name}: first ${first} requests, then ${requests.length} requests and ${Math.round(bytes / 1_000)} kB in ${took.toFixed(0)} s, largest answer ${page.traffic.largest.size} bytes`);
    check(first <= FIRST_MAX, `${name}: ${first} requests at first`);
    check((requests.length * 10) / took <= TEN_SECONDS_MAX, `${name}: ${requests.length} requests in ${took} s`);
    costs.push([name, cost]);
    // An agent that does not describe itself is answered 404.
    assert.deepEqual(page.problems.filter((one) => !one.includes("/description")), [], name);
    recorded.push(requests.filter((one) => !one.isStream));
    await page.end();
  };
  const before = await share(pid, IDLE_SECONDS);
  for (const page of PAGES) await measure(page).catch((error) => check(false, `${page[0]}: ${error.message}`));
  await browser.close();
  browser = undefined;
  const after = await share(pid, IDLE_SECONDS);
  const idle = (before + after) / 2;
  console.log(`without pages: ${percent(before)} of a core before, ${percent(after)} after`);
  for (const [name, cost] of costs) {
    const own = Math.max(0, cost - idle);
    console.log(`${name}: ${percent(own)} of a core`);
    check(!isOptimized || own < ONE_PAGE_MAX, `${name}: ${percent(own)} of a core`);
  }

  // Each open page repeats the requests of one of the recorded pages, spread over the same time.
  let [asked, refused, largest] = [0, 0, 0];
  const failed = [];
  let isOver = false;
  const openPage = async (number) => {
    const requests = recorded[number % recorded.length];
    if (requests.length === 0) return;
    await pause((1_000 * SECONDS * number) / OPEN_PAGES);
    for (let index = 0; !isOver; index += 1) {
      const one = requests[index % requests.length];
      const { status, size } = await bulk.send(one).catch((error) => ({ status: error.code, size: 0 }));
      asked += 1;
      if (status === 429 || status === 503) refused += 1;
      // An agent that does not describe itself is answered 404.
      else if (status !== 200 && !(status === 404 && one.path.endsWith("/description"))) failed.push(`${one.path}: ${status}`);
      largest = Math.max(largest, size);
      await pause((1_000 * SECONDS) / requests.length);
    }
  };
  // Meanwhile others work: each call of the API is answered.
  let served = 0;
  const work = async () => {
    while (!isOver) {
      await bulk.json("POST", "/v1/conversations/others/messages", { messages: [{ role: "user", content: "x" }] });
      served += 1;
      await pause(50);
    }
  };
  const alone = await share(pid, SECONDS, async () => {
    setTimeout(() => (isOver = true), 1_000 * SECONDS);
    await work();
  });
  isOver = false;
  served = 0;
  const together = await share(pid, 3 * SECONDS, async () => {
    setTimeout(() => (isOver = true), 3_000 * SECONDS);
    await Promise.all([work(), ...Array.from({ length: OPEN_PAGES }, (_, number) => openPage(number))]);
  });
  const own = Math.max(0, together - alone);
  console.log(`${OPEN_PAGES} pages: ${asked} requests in ${3 * SECONDS} s, largest answer ${largest} bytes, ${percent(own)} of a core, ${served} appends of others`);
  check(failed.length + refused === 0, `${failed.length} errors and ${refused} refusals of ${asked} requests: ${failed.slice(0, 5).join(", ")}`);
  check(largest <= ANSWER_MAX, `an answer of ${largest} bytes`);
  check(served > 0, "no append of others");
  check(!isOptimized || own < FIFTY_PAGES_MAX, `${OPEN_PAGES} pages: ${percent(own)} of a core`);
  for (const socket of sockets) socket.destroy();
} finally {
  await browser?.close();
  await world.close();
}
process.exit(failures.length === 0 ? 0 : 1);
