// A node with something to see, for the tests of the console: agents, conversations, topics with a
// lagging group, limits, mailboxes with dead letters, and content that tries to be HTML.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const HOSTILE = `<script>window.hacked=1</script><img src=x onerror="window.hacked=2">`;

export class World {
  children = [];

  constructor(program) {
    this.program = program;
    this.directory = mkdtempSync(join(tmpdir(), "telpher-ui-"));
  }

  // Starts a node on free ports, or on those that it had before.
  async serve(name, extra = []) {
    const ports = this.ports?.[name] ?? ["127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"];
    const [http, native, kafka] = ports;
    const args = ["serve", "--json", "--data", join(this.directory, name), "--slim-listen", "none", "--journal-segment-size", "16MiB"];
    args.push("--http-listen", http, "--native-listen", native, "--kafka-listen", kafka, "--mailbox-deliveries-max", "1", ...extra);
    const child = this.spawn(args);
    const ready = JSON.parse(await firstLine(child));
    const bare = (url) => url.replace(/^\w+:\/\//, "");
    this.ports = { ...this.ports, [name]: [bare(ready.http), bare(ready.native), bare(ready.kafka)] };
    return { child, http: ready.http, native: ready.native, kafka: ready.kafka };
  }

  // Starts a cluster of three members; returns their addresses.
  async cluster() {
    const args = ["cluster", "dev", "--nodes", "3", "--data", join(this.directory, "cluster"), "--json"];
    // It runs until the end of its input.
    const child = this.spawn(args, this.program, "pipe");
    const { nodes } = JSON.parse(await firstLine(child));
    return nodes;
  }

  spawn(args, program = this.program, input = "ignore") {
    const child = spawn(program, args, { stdio: [input, "pipe", "inherit"], cwd: this.directory, env: { ...process.env, HOME: this.directory } });
    this.children.push(child);
    return child;
  }

  async run(args, program = this.program) {
    const child = this.spawn(args, program);
    let text = "";
    child.stdout.on("data", (piece) => (text += piece));
    const code = await ended(child);
    if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}`);
    return text;
  }

  // Starts an agent that answers with what it gets.
  listen(node, name, description) {
    const args = ["listen", name, "--echo", "--quiet", "--url", node.native];
    if (description) {
      const file = join(this.directory, `${name.replaceAll("/", "-")}.json`);
      writeFileSync(file, JSON.stringify(description));
      args.push("--describe", file);
    }
    return this.spawn(args);
  }

  async close() {
    for (const child of this.children) child.kill("SIGKILL");
    await Promise.all(this.children.map((child) => (child.exitCode === null && child.signalCode === null ? ended(child) : null)));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export function ended(child) {
  return new Promise((resolve) => child.once("exit", (code) => resolve(code)));
}

function firstLine(child) {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the node ended with ${code}`)));
  });
}

export async function until(what, condition, ms = 60_000) {
  for (const start = Date.now(); ; ) {
    const found = await condition();
    if (found) return found;
    if (Date.now() - start > ms) throw new Error(`still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Api {
  // `token` and `ca`, a certificate, are those of a guarded node.
  constructor(node, { token, ca } = {}) {
    this.base = node.http;
    this.token = token;
    this.ca = ca;
  }

  async ask(method, path, body, headers = {}) {
    const json = typeof body !== "string" && body !== undefined;
    const all = { ...(json ? { "content-type": "application/json" } : {}), ...(this.token ? { authorization: `Bearer ${this.token}` } : {}), ...headers };
    const { status, text } = await this.send(method, path, all, json ? JSON.stringify(body) : body);
    if (status >= 300 && status !== 429 && status !== 403) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  async send(method, path, headers, body) {
    if (this.ca) return sendOverTls(this.base + path, { method, headers, ca: this.ca }, body);
    const answer = await fetch(this.base + path, { method, headers, body });
    return { status: answer.status, text: await answer.text() };
  }

  append(id, messages, place = "") {
    return this.ask("POST", `/v1${place}/conversations/${id}/messages`, { messages });
  }
}

// `fetch` has no option for the certificate of a server.
function sendOverTls(url, options, body) {
  return new Promise((resolve, reject) => {
    const sent = https.request(url, options, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece) => (text += piece));
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
      answer.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const DESCRIPTION = {
  version: "1.2.0",
  description: "Plans trips: looks up connections and prices, and books them.",
  methods: [
    {
      name: "search",
      description: "Find connections between two places.",
      input: {
        type: "object",
        properties: { from: { type: "string", default: "Ulm" }, to: { type: "string", default: "Berlin" }, seats: { type: "integer", default: 2 } },
        required: ["from", "to"],
      },
      output: { type: "array", items: { type: "object", properties: { leaves: { type: "string" }, price: { type: "number" } } } },
    },
    { name: "book", description: "Book a connection.", input: { type: "object", properties: { connection: { type: "string" } } } },
  ],
};

const text = (role, from, content, tokens) => ({ role, from, content, tokens });

// Fills a node, and returns its API.
export async function fill(world, node, { mailboxes = 0 } = {}) {
  const api = new Api(node);
  world.listen(node, "acme/travel/planner", DESCRIPTION);
  world.listen(node, "acme/travel/planner");
  world.listen(node, "acme/travel/payments", { version: "0.9.1", description: "Takes payments.", methods: [{ name: "charge" }, { name: "refund" }] });
  world.listen(node, "acme/support/triage");
  world.listen(node, "acme/support/writer");
  await until("agents are connected", async () => (await api.ask("GET", "/v1/agents")).agents.filter((one) => one.name.startsWith("acme/") && one.instances.length > 0).length === 4);
  await fillOverHttp(api, { mailboxes });
  await world.run(["-b", node.kafka, "-G", "billing", "-X", "auto.offset.reset=earliest", "-X", "enable.auto.commit=true", "-c", "90", "-q", "orders"], "kcat");
  return api;
}

// Fills a node with what HTTP alone can do: everything but connected agents and consumer groups.
export async function fillOverHttp(api, { mailboxes = 0 } = {}) {
  const limits = [
    { name: "agent-requests", match: "*/*/*", unit: "requests", capacity: 20, refill: "10/m" },
    { name: "org-spend", match: "*", unit: "usd_micros", budget: 50_000_000, every: "day" },
    { name: "namespace-tokens", match: "*/*", unit: "tokens", capacity: 400_000, refill: "40000/m", warn: [0.5] },
    { name: "runs", match: "*/*/*", unit: "concurrency", capacity: 4, mode: "shadow" },
  ];
  await api.ask("PUT", "/v1/policies", { limits, reason: "first limits" });
  await api.ask("PUT", "/v1/overrides", { limit: "agent-requests", prefix: "acme/travel/planner", capacity: 60, for: "2h", reason: "launch day" });
  for (let index = 0; index < 27; index += 1) await api.ask("POST", "/v1/take", { subject: "acme/support/triage", cost: { requests: 1 } });
  await api.ask("POST", "/v1/take", { subject: "acme/travel/planner", cost: { requests: 12, usd_micros: 18_400_000, tokens: 91_000 } });
  await api.ask("POST", "/v1/halt", { prefix: "acme/lab", reason: "it loops" });

  const call = { role: "assistant", from: "planner", tokens: 48, parts: [{ type: "tool-search", toolCallId: "c1", state: "output-available", input: { from: "Ulm", to: "Berlin", seats: 2 }, output: [{ leaves: "08:51", price: 119.8 }, { leaves: "10:51", price: 89.9 }] }] };
  const openai = [
    { role: "assistant", from: "planner", tokens: 20, tool_calls: [{ id: "c2", type: "function", function: { name: "book", arguments: '{"connection":"10:51"}' } }] },
    { role: "tool", tool_call_id: "c2", content: '{"booking":"X7F3","paid":true}', tokens: 16 },
  ];
  await api.ask("PUT", "/v1/conversations/trip-ulm-berlin", { metadata: { user: "alice", plan: "pro", channel: "web" }, participants: ["alice", "planner"] });
  await api.append("trip-ulm-berlin", [
    text("system", undefined, "You plan trips. Ask before you book.", 12),
    text("user", "alice", "We need to be in Berlin by two in the afternoon, two of us. What is the cheapest?", 24),
    { ...call },
    text("assistant", "planner", "The 10:51 is the cheapest for two: 89.90 €, and you arrive at 13:27. Shall I book it?", 31),
    text("user", "alice", "Yes, please. Seats by the window if there are any.", 14),
    ...openai,
    text("assistant", "planner", "Booked: X7F3, coach 7, seats 71 and 73, both by the window.", 22),
  ]);
  await api.ask("PUT", "/v1/conversations/trip-ulm-berlin/cursors/alice", { seq: 4 });
  await api.append("hostile", [
    text("user", HOSTILE, HOSTILE, 5),
    text("user", "mallory", "control \u0007 characters, right to left \u202Egnp.exe, שלום עולם, and a very long word: " + "x".repeat(3_000), 9),
    { role: "assistant", tokens: 3, parts: [{ type: "data-x", html: HOSTILE }, { type: "tool-call", toolCallId: "h", toolName: HOSTILE, input: { x: HOSTILE } }] },
  ]);
  for (let index = 0; index < 12; index += 1) {
    await api.ask("PUT", `/v1/conversations/support-${index + 1}`, { metadata: { user: ["alice", "bob", "chen"][index % 3], topic: ["billing", "delivery"][index % 2] } });
    await api.append(`support-${index + 1}`, [text("user", ["alice", "bob", "chen"][index % 3], "Where is my parcel?", 5), text("assistant", "triage", "It left the depot this morning.", 8)]);
  }

  await api.ask("POST", "/v1/topics", { name: "orders", partitions: 3, configs: { "retention.ms": 86_400_000 } });
  await api.ask("POST", "/v1/topics", { name: "telemetry", partitions: 1 });
  const orders = Array.from({ length: 240 }, (_, index) => ({
    key: `customer-${index % 17}`,
    value: { order: 1_000 + index, items: [{ sku: "B-42", count: (index % 3) + 1 }], total: Math.round((19.9 + index / 7) * 100) / 100, note: index === 239 ? HOSTILE : undefined },
    headers: [["trace", `7f${index.toString(16)}`], ["source", "web"]],
  }));
  await api.ask("POST", "/v1/topics/orders/records", orders);
  await api.ask("POST", "/v1/topics/telemetry/records", [{ value: "plain text" }, { value: { base64: "AAH/" } }, { value: null, key: "k" }]);

  for (let index = 0; index < 9; index += 1) await api.ask("POST", "/v1/acme/jobs/agents/resize/write", JSON.stringify({ image: `photo-${index}.jpg`, width: 640 }), { "content-type": "application/json" });
  await api.ask("POST", "/v1/acme/jobs/agents/resize/write", HOSTILE, { "content-type": "text/plain" });
  const taken = await api.ask("POST", "/v1/acme/jobs/agents/resize/mailbox/take?max=2");
  await api.ask("POST", "/v1/acme/jobs/agents/resize/mailbox/nack", { leases: taken.messages.map((one) => one.lease) });

  const names = Array.from({ length: mailboxes }, (_, index) => `worker-${String(index).padStart(5, "0")}`);
  while (names.length > 0) await Promise.all(names.splice(0, 50).map((name) => api.ask("POST", `/v1/big/fleet/agents/${name}/write`, "x", { "content-type": "text/plain" })));
}

// Streams an answer into a conversation, piece by piece, until `end` is called.
export function streamAnswer(api, conversation, id) {
  const encoder = new TextEncoder();
  let controller;
  const body = new ReadableStream({ start: (made) => (controller = made) });
  const say = (chunk) => controller.enqueue(encoder.encode(`${JSON.stringify(chunk)}\n`));
  const answered = fetch(`${api.base}/v1/conversations/${conversation}/messages/${id}/stream?role=assistant&from=planner`, { method: "POST", headers: { "content-type": "application/x-ndjson" }, body, duplex: "half" });
  say({ type: "start" });
  say({ type: "text-start", id: "t" });
  return {
    say: (delta) => say({ type: "text-delta", id: "t", delta }),
    end: async () => {
      say({ type: "text-end", id: "t" });
      say({ type: "finish" });
      controller.close();
      return (await answered).status;
    },
  };
}
