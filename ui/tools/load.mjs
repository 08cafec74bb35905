// Tests of the console at nodes under load and with content that is hard to show.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { open, shows, visit } from "./page.mjs";
import { Api, HOSTILE, ended, fill, fillOverHttp, streamAnswer, until } from "./world.mjs";

const text = (role, from, content) => ({ role, from, content });

const sees = (page, what, condition, ...given) => until(what, () => page.evaluate(condition, ...given));

// Keeps a node busy until `end` is called: calls, messages, records, denied takes, a streamed answer.
async function startLoad(api) {
  const state = { isOver: false, rounds: 0 };
  await api.append("under-load", [text("user", "alice", "Tell me everything.")]);
  const answer = streamAnswer(api, "under-load", "a-load");
  const work = (async () => {
    for (; !state.isOver; state.rounds += 1) {
      await Promise.all([
        api.ask("POST", "/v1/acme/travel/agents/planner/request/search", '{"from":"Ulm"}', { "content-type": "application/json" }),
        api.ask("POST", "/v1/acme/support/agents/writer/send", "x", { "content-type": "text/plain" }),
        api.append("busy", [text("user", "alice", `message ${state.rounds}`)]),
        api.ask("POST", "/v1/topics/orders/records", [{ key: "customer-load", value: { round: state.rounds } }]),
        api.ask("POST", "/v1/take", { subject: "acme/support/triage", cost: { requests: 1 } }),
      ]);
      answer.say(`word ${state.rounds} `);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return {
    state,
    end: async () => {
      state.isOver = true;
      await work;
      return answer.end();
    },
  };
}

// The certificate of a node on loopback, made by openssl.
function certificate(directory) {
  const [key, cert] = ["key.pem", "cert.pem"].map((name) => join(directory, name));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { key, cert };
}

async function enterToken(page, token) {
  await sees(page, "a token is asked for", () => Boolean(document.querySelector("#token")));
  await page.type("#token", token);
  await page.keyboard.press("Enter");
}

export const loadTests = {
  // Every page at a node under load: no error, no request elsewhere, no large answer; what happens
  // is shown.
  async load({ browser, world, pages }) {
    const node = await world.serve("load");
    const api = await fill(world, node);
    const load = await startLoad(api);
    await until("the load runs", () => load.state.rounds > 5);
    const page = await open(browser, node.http, { hash: "#/conversations/default/default/under-load" });
    await shows(page, "word 3 ");
    await shows(page, "streaming");
    for (const [name, hash, expected] of pages) {
      page.quiet = name === "agents-unknown" || name === "agent";
      await visit(page, hash);
      await shows(page, expected);
      page.traffic.check(name);
      // An agent that does not describe itself is answered 404.
      assert.deepEqual(page.problems.filter((one) => !one.includes("/description")), [], name);
    }
    await visit(page, "#/topics/groups/billing");
    const lag = () => page.evaluate(() => Number([...document.querySelectorAll(".stat")].find((one) => one.textContent.startsWith("Lag"))?.querySelector("dd")?.textContent.replaceAll(",", "")));
    const before = await until("the group lags", lag);
    await until("the lag grows", async () => (await lag()) > before);
    await visit(page, "#/quotas/usage");
    const denied = () => page.evaluate(() => Number([...document.querySelectorAll("tbody tr")].find((row) => row.textContent.includes("acme/support/triage"))?.querySelector("td:last-child")?.textContent.replaceAll(",", "")));
    const first = await until("the agent is denied", denied);
    await until("it is denied again", async () => (await denied()) > first);
    await visit(page, "#/now");
    await shows(page, "denied");
    await sees(page, "requests are counted", () => Number.parseFloat([...document.querySelectorAll(".stat")].find((one) => one.textContent.startsWith("Requests"))?.querySelector("dd")?.textContent ?? "0") > 0);
    assert.equal(await load.end(), 201);
    await page.end();
  },

  // A mailbox that takes no more: its writers are refused, and the console shows why.
  async full({ browser, world }) {
    const node = await world.serve("full", ["--mailbox-messages-max", "5"]);
    const api = new Api(node);
    const write = async () => (await fetch(`${node.http}/v1/acme/jobs/agents/slow/write`, { method: "POST", body: "job", headers: { "content-type": "text/plain" } })).status;
    const statuses = [];
    for (let index = 0; index < 8; index += 1) statuses.push(await write());
    assert.equal(statuses.filter((status) => status < 300).length, 5, `${statuses}`);
    const page = await open(browser, node.http, { hash: "#/mailboxes" });
    await shows(page, "acme/jobs/slow");
    await sees(page, "five messages wait", () => document.querySelector("tbody tr td:nth-child(2)")?.textContent === "5");
    // The history begins with the changes after its first sample.
    const code = await until("a refusal is in the history", async () => {
      const writer = world.spawn(["write", "acme/jobs/slow", "job", "--url", node.native]);
      assert.notEqual(await ended(writer), 0);
      return Object.keys((await api.ask("GET", "/v1/history")).failures)[0];
    });
    await visit(page, "#/now");
    await shows(page, code);
    await visit(page, `#/node/errors?code=${code}`);
    await shows(page, code);
    assert.deepEqual(page.problems, []);
    await page.end();
  },

  // The pages of a node with TLS and tokens, with the token of an administrator and with that of an
  // agent.
  async tls({ browser, world, pages }) {
    const { key, cert } = certificate(world.directory);
    const data = join(world.directory, "tls");
    const add = async (words) => (await world.run(["token", "add", ...words, "--data", data])).trim().split("\n").at(-1).trim();
    const admin = await add(["root", "--role", "admin"]);
    const agent = await add(["viewer"]);
    const node = await world.serve("tls", ["--tls-certificate", cert, "--tls-key", key]);
    assert.ok(node.http.startsWith("https://"), node.http);
    const api = new Api(node, { token: admin, ca: readFileSync(cert) });
    await fillOverHttp(api);
    // These need connected agents or consumer groups.
    const others = ["agent", "groups", "group", "group-reset"];
    const page = await open(browser, node.http, { hash: "#/agents" });
    page.quiet = true;
    await enterToken(page, admin);
    for (const [name, hash, expected] of pages.filter(([name]) => !others.includes(name))) {
      await visit(page, hash);
      await shows(page, name === "agents" ? "resize" : name === "connections" ? "Connections" : expected);
      page.traffic.check(name);
    }
    await visit(page, "#/conversations/default/default/support-2");
    await shows(page, "It left the depot");
    await api.append("support-2", [text("user", "bob", "over TLS, live")]);
    await shows(page, "over TLS, live");
    assert.deepEqual(page.problems, []);
    await page.end();

    const guest = await open(browser, node.http, { hash: "#/conversations/default/default/support-2" });
    guest.quiet = true;
    await enterToken(guest, agent);
    await shows(guest, "It left the depot");
    await visit(guest, "#/quotas/audit");
    await shows(guest, "The audit is for administrators");
    await visit(guest, "#/quotas/halts");
    await shows(guest, "it loops");
    const press = (label) => sees(guest, `a button ${label}`, (wanted) => {
      const found = [...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button")].find((one) => one.textContent.trim() === wanted);
      found?.click();
      return Boolean(found);
    }, label);
    await press("Resume");
    await press("Confirm: Resume");
    await sees(guest, "the node refuses", () => Boolean(document.querySelector("dialog .failure")));
    assert.equal(Object.keys((await api.ask("GET", "/v1/halts")).halts).length, 1);
    await guest.end();
  },

  // Every page says that the node is lost, keeps what it shows, and goes on when it is back.
  async outage({ browser, world }) {
    let node = await world.serve("outage");
    const api = new Api(node);
    await fillOverHttp(api);
    const views = [
      ["#/now", "Last events"],
      ["#/agents", "resize"],
      ["#/conversations", "trip-ulm-berlin"],
      ["#/conversations/default/default/trip-ulm-berlin", "Booked: X7F3"],
      ["#/topics", "telemetry"],
      ["#/topics/topic/orders?partition=1&live=1", "New records"],
      ["#/quotas", "agent-requests"],
      ["#/mailboxes/acme/jobs/resize", "photo-5.jpg"],
      ["#/node", "Write amplification"],
    ];
    const opened = [];
    for (const [hash, expected] of views) {
      const page = await open(browser, node.http, { hash });
      page.quiet = true;
      await shows(page, expected);
      opened.push([page, hash, expected]);
    }
    node.child.kill("SIGKILL");
    await ended(node.child);
    for (const [page, , expected] of opened) {
      await page.bringToFront();
      await shows(page, "The node does not answer.");
      await shows(page, expected);
    }
    node = await world.serve("outage");
    for (const [page, hash, expected] of opened) {
      await page.bringToFront();
      await sees(page, `the banner of ${hash} is gone`, () => !document.querySelector(".banner"));
      await shows(page, expected);
    }
    const [live] = opened.find(([, hash]) => hash.includes("live=1"));
    await live.bringToFront();
    // The stream begins with the records that are appended after it was opened again.
    await until("a live record is shown", async () => {
      await new Api(node).ask("POST", "/v1/topics/orders/records", [{ value: "after the outage", partition: 1 }]);
      return live.evaluate(() => document.body.innerText.includes("after the outage"));
    });
    for (const [page] of opened) await page.end();
  },

  // Texts of several megabytes, control characters and text of both directions: shown in part, as text,
  // and by small answers.
  async huge({ browser, node, api }) {
    const letters = "é".repeat(30_000);
    for (let index = 0; index < 60; index += 1) await api.append("long", [text("user", "alice", `number ${index} ${letters}`)]);
    await api.append("largest", [text("user", "mallory", `${HOSTILE} ${"y".repeat(900_000)} the end`)]);
    await api.append("scripts", [
      text("user", "mallory", "left \u202Etfel\u202C \u2066isolated\u2069 \u200Fmark \u0000nul \u001b[31mred\u0085"),
      text("user", "noa", "שלום עולם, مرحبا بالعالم"),
    ]);
    await api.ask("POST", "/v1/topics", { name: "large", partitions: 1 });
    for (let index = 0; index < 3; index += 1) await api.ask("POST", "/v1/topics/large/records", [{ value: `${HOSTILE} ${"z".repeat(700_000)}` }]);
    for (let index = 0; index < 5; index += 1) await api.ask("POST", "/v1/acme/jobs/agents/large/write", `${HOSTILE} ${"w".repeat(500_000)}`, { "content-type": "text/plain" });

    const page = await open(browser, node.http, { hash: "#/conversations/default/default/long" });
    await shows(page, "number 59");
    assert.ok(!(await page.evaluate(() => document.body.innerText.includes("number 0 "))), "the first message is not read at first");
    const count = () => page.evaluate(() => document.querySelectorAll(".message").length);
    const atFirst = await count();
    await page.evaluate(() => [...document.querySelectorAll("button")].find((one) => one.textContent === "Load earlier messages").click());
    await until("earlier messages are shown", async () => (await count()) > atFirst);
    page.traffic.check("a long conversation");
    await visit(page, "#/conversations/default/default/largest");
    await shows(page, "Show all 900,");
    await visit(page, "#/conversations/default/default/scripts");
    await shows(page, "\u2039U+202E\u203atfel");
    await shows(page, "\u2400nul");
    await shows(page, "\u241b[31mred");
    await shows(page, "שלום");
    assert.equal(await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u0000\u001b]/.test(document.querySelector("main").textContent)), false, "no control character is left");
    await visit(page, "#/topics/topic/large");
    await shows(page, "Load 684 KiB");
    page.traffic.check("large records");
    await page.evaluate(() => [...document.querySelectorAll("button")].find((one) => one.textContent.startsWith("Load 684")).click());
    await shows(page, "Show all 700,");
    await visit(page, "#/mailboxes/acme/jobs/large");
    await shows(page, HOSTILE);
    await page.evaluate(() => document.querySelectorAll("main details").forEach((one) => (one.open = true)));
    await shows(page, "Load all 488 KiB");
    page.traffic.check("large messages of a mailbox");
    await page.evaluate(() => [...document.querySelectorAll("button")].find((one) => one.textContent.startsWith("Load all")).click());
    await shows(page, "Show all 500,");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script").length), 0);
    assert.deepEqual(page.problems, []);
    await page.end();
  },
};
