// Tests the console in Chromium against a node: `node tools/browser.mjs PROGRAM [--pictures] [NAME...]`.
//
// Every page is opened in both themes and at two widths. It must show its content, pass axe, fit into
// the window, and neither log an error nor send a request elsewhere. `--pictures` writes pictures for
// the documentation into docs/images.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { loadTests } from "./load.mjs";
import { SIZES, checkAccessibility, checkFits, launch, open, root, shows } from "./page.mjs";
import { clusterPicture, demoPicture, placeTests } from "./places.mjs";
import { Api, HOSTILE, World, ended, fill, streamAnswer, until } from "./world.mjs";

const [program, ...rest] = process.argv.slice(2);
const withPictures = rest.includes("--pictures");
const wanted = rest.filter((word) => !word.startsWith("--"));
if (!program) throw new Error("the path of telpher is missing");

const PICTURES = join(root, "../docs/images");

// The address of each page, and a text that it shows when it is complete.
const PAGES = [
  ["now", "#/now", "Disk sync"],
  ["agents", "#/agents", "planner"],
  ["agent", "#/agents/acme/travel/planner?method=search", "Find connections"],
  ["agents-unknown", "#/agents/no/such/agent", "No instance is connected"],
  ["conversations", "#/conversations", "trip-ulm-berlin"],
  ["inbox", "#/conversations/default/default?view=inbox&who=alice", "trip-ulm-berlin"],
  ["conversation", "#/conversations/default/default/trip-ulm-berlin?budget=120", "Booked: X7F3"],
  ["conversation-tools", "#/conversations/default/default/trip-ulm-berlin", "Result of the tool call"],
  ["conversation-at", "#/conversations/default/default/trip-ulm-berlin?at=3", "Messages around 3"],
  ["hostile", "#/conversations/default/default/hostile", "<script>"],
  ["topics", "#/topics", "telemetry"],
  ["topic", "#/topics/topic/orders", "customer-"],
  ["topic-offset", "#/topics/topic/orders?partition=1&from=10", "customer-"],
  ["topic-partitions", "#/topics/topic/orders?tab=partitions", "Committed end"],
  ["topic-settings", "#/topics/topic/orders?tab=settings", "retention.ms"],
  ["groups", "#/topics/groups", "billing"],
  ["group", "#/topics/groups/billing", "Committed"],
  ["group-reset", "#/topics/groups/billing?tab=reset&to=shift&by=-10", "--shift-by -10 --dry-run"],
  ["quotas", "#/quotas?subject=acme/support/triage", "agent-requests"],
  ["quotas-usage", "#/quotas/usage", "acme/support/triage"],
  ["quotas-halts", "#/quotas/halts", "it loops"],
  ["quotas-audit", "#/quotas/audit", "first limits"],
  ["mailboxes", "#/mailboxes", "acme/jobs/resize"],
  ["mailbox", "#/mailboxes/acme/jobs/resize", "photo-5.jpg"],
  ["mailbox-dead", "#/mailboxes/acme/jobs/resize?show=dead", "photo-0.jpg"],
  ["node", "#/node", "Write amplification"],
  ["config", "#/node/config?filter=listen", "--http-listen"],
  ["config-changed", "#/node/config?layer=changed", "--mailbox-deliveries-max"],
  ["doctor", "#/node/doctor", "file system"],
  ["connections", "#/node/connections", "native"],
  ["errors", "#/node/errors?code=unconfirmed", "unconfirmed"],
  ["metrics", "#/node/metrics?filter=journal", "telpher_journal_records_total"],
  ["missing", "#/nothing", "There is no such page"],
];

const tests = {
  async pages({ browser, node }) {
    const failures = [];
    for (const theme of ["light", "dark"]) {
      for (const size of Object.keys(SIZES)) {
        const page = await open(browser, node.http, { size, theme });
        for (const [name, hash, text] of PAGES) {
          const place = `${name}, ${theme}, ${size}`;
          // The page that does not exist asks the node for what is not there.
          page.quiet = name === "agents-unknown" || name === "agent";
          await page.evaluate((next) => (location.hash = next), hash);
          await shows(page, text);
          mkdirSync(join(root, "../target/ui"), { recursive: true });
          await page.screenshot({ path: join(root, `../target/ui/${name}-${theme}-${size}.png`), fullPage: size === "phone" });
          for (const check of [checkAccessibility, checkFits]) await check(page, place).catch((error) => failures.push(error.message));
          if (page.problems.length > 0) failures.push(`${place}: ${page.problems.splice(0).join("; ")}`);
        }
        await page.end();
      }
    }
    assert.deepEqual(failures, []);
  },

  async hostile({ browser, node }) {
    const page = await open(browser, node.http, { hash: "#/conversations/default/default/hostile" });
    await shows(page, HOSTILE);
    for (const hash of ["#/topics/topic/orders?partition=0", "#/topics/topic/orders?partition=1", "#/topics/topic/orders?partition=2", "#/mailboxes/acme/jobs/resize", `#/agents?filter=${encodeURIComponent(HOSTILE)}`, `#/${encodeURIComponent(HOSTILE)}`]) {
      await page.evaluate((next) => (location.hash = next), hash);
      await page.waitForNetworkIdle({ idleTime: 200 });
      await page.evaluate(() => document.querySelectorAll("main details").forEach((one) => (one.open = true)));
    }
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script").length), 0);
    assert.deepEqual(page.problems, []);
    await page.end();
  },

  async live({ browser, node, api }) {
    const page = await open(browser, node.http, { hash: "#/conversations/default/default/support-1" });
    await shows(page, "It left the depot");
    await api.append("support-1", [{ role: "user", from: "alice", content: "And when will it arrive?" }]);
    await shows(page, "And when will it arrive?");
    const answer = streamAnswer(api, "support-1", "a-live");
    answer.say("It will arrive ");
    await shows(page, "It will arrive");
    await shows(page, "streaming");
    answer.say("tomorrow.");
    await shows(page, "It will arrive tomorrow.");
    assert.equal(await answer.end(), 201);
    await until("the answer is a message", () => page.evaluate(() => !document.querySelector(".is-draft") && document.body.innerText.includes("It will arrive tomorrow.")));
    await page.evaluate(() => (location.hash = "#/topics/topic/telemetry?partition=0&live=1"));
    await shows(page, "No record has arrived yet");
    await until("a live record is shown", async () => {
      await api.ask("POST", "/v1/topics/telemetry/records", [{ value: { live: "yes-it-is" } }]);
      return page.evaluate(() => document.body.innerText.includes("yes-it-is"));
    });
    assert.deepEqual(page.problems, []);
    await page.end();
  },

  async changes({ browser, node, api }) {
    const page = await open(browser, node.http, { hash: "#/mailboxes/acme/jobs/resize?show=dead" });
    await shows(page, "photo-0.jpg");
    const press = (label) =>
      until(`there is a button "${label}"`, () =>
        page.evaluate((text) => {
          const buttons = [...document.querySelectorAll("dialog[open] button")].concat(document.querySelector("dialog[open]") ? [] : [...document.querySelectorAll("button")]);
          const found = buttons.find((one) => one.textContent.trim() === text && !one.disabled);
          found?.click();
          return Boolean(found);
        }, label),
      );
    await press("Retry");
    await shows(page, "telpher mailbox retry acme/jobs/resize 0");
    const dead = async () => {
      const { mailboxes } = await api.ask("POST", "/v1/telpher/system/agents/node/request/mailboxes", { prefix: "acme/jobs/", after: "", limit: 10 });
      return mailboxes[0].dead;
    };
    assert.equal(await dead(), 2, "the first click changes nothing");
    await checkAccessibility(page, "a dialog");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.querySelector("dialog")), null);
    await press("Retry");
    await press("Confirm: Retry");
    await until("one dead letter is left", async () => (await dead()) === 1);
    await page.evaluate(() => (location.hash = "#/quotas/halts"));
    await shows(page, "it loops");
    await press("Resume");
    await shows(page, "telpher quota resume acme/lab");
    await press("Confirm: Resume");
    await shows(page, "Nothing is halted");
    assert.deepEqual((await api.ask("GET", "/v1/halts")).halts, {});
    await api.ask("POST", "/v1/halt", { prefix: "acme/lab", reason: "it loops" });
    const lag = async () => (await api.ask("GET", "/v1/groups/billing")).partitions.reduce((sum, one) => sum + one.lag, 0);
    const before = await lag();
    await page.evaluate(() => (location.hash = "#/topics/groups/billing?tab=reset&to=latest"));
    await shows(page, "telpher group reset-offsets billing --to-latest --dry-run");
    await press("Reset offsets");
    await shows(page, "will be reset: its consumers will read 0 records again");
    assert.ok(before > 0 && (await lag()) === before, "the first click changes nothing");
    await press("Confirm: Reset offsets");
    await until("the group has no lag", async () => (await lag()) === 0);
    await page.evaluate(() => (location.hash = "#/topics/groups/billing?tab=reset&to=offset&by=999999&topic=orders"));
    await shows(page, "A position outside of a partition becomes its start or its end.");
    await page.evaluate(() => (location.hash = "#/agents/acme/travel/planner?method=search"));
    await shows(page, "Find connections");
    await until("the form has an example", () => page.evaluate(() => document.querySelector("textarea")?.value.includes('"from": "Ulm"')));
    await press("Send");
    await until("the answer is shown", () => page.evaluate(() => document.querySelector(".outcome pre")?.textContent.includes('"to": "Berlin"')));
    await page.end();
  },

  async keyboard({ browser, node }) {
    const page = await open(browser, node.http, { hash: "#/topics" });
    await shows(page, "telemetry");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
    await page.evaluate(() => [...document.querySelectorAll(".pages a")].find((one) => one.textContent.includes("Quotas")).focus());
    await page.keyboard.press("Enter");
    await shows(page, "What is left for a subject");
    assert.equal(await page.evaluate(() => location.hash), "#/quotas");
    await page.goBack();
    await shows(page, "telemetry");
    await page.click("button.icon");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark", "the choice is kept");
    assert.deepEqual(page.problems, []);
    await page.end();
  },

  async token({ browser, world }) {
    const node = await world.serve("guarded");
    const secret = (await world.run(["token", "add", "viewer", "--data", join(world.directory, "guarded")])).trim().split("\n").at(-1).trim();
    await until("the node requires a token", async () => (await fetch(`${node.http}/v1/agents`)).status === 401);
    const page = await open(browser, node.http, { hash: "#/quotas/audit" });
    // The browser logs every answer with an error.
    page.quiet = true;
    const enter = async (text) => {
      await until("a token is asked for", () => page.evaluate(() => Boolean(document.querySelector("#token"))));
      await page.type("#token", text);
      await page.keyboard.press("Enter");
    };
    await shows(page, "This node requires a token");
    await checkAccessibility(page, "the token's dialog");
    await enter("wrong");
    await shows(page, "does not accept this token");
    await enter(secret);
    await shows(page, "The audit is for administrators");
    for (const [hash, text] of [["#/node/config", "The configuration is for administrators"], ["#/node/doctor", "The checks are for administrators"]]) {
      await page.evaluate((next) => (location.hash = next), hash);
      await shows(page, text);
    }
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
    assert.ok(!stored.includes(secret), "the token is in memory only");
    await page.reload();
    await shows(page, "This node requires a token");
    await page.end();
  },

  async reconnect({ browser, world }) {
    let node = await world.serve("restarted");
    await new Api(node).append("before", [{ role: "user", content: "before the restart" }]);
    const page = await open(browser, node.http, { hash: "#/conversations/default/default/before" });
    page.quiet = true;
    await shows(page, "before the restart");
    node.child.kill("SIGKILL");
    await ended(node.child);
    await shows(page, "The node does not answer.");
    await shows(page, "before the restart");
    node = await world.serve("restarted");
    await until("the banner is gone", () => page.evaluate(() => !document.querySelector(".banner")));
    await new Api(node).append("before", [{ role: "user", content: "after the restart" }]);
    await shows(page, "after the restart");
    await page.end();
  },

  async member({ browser, world }) {
    const nodes = await world.cluster();
    const address = (node) => `http://${node.http}`;
    const members = await until("a member leads", async () => {
      const answer = await fetch(`${address(nodes[0])}/v1/cluster`).catch(() => null);
      return answer?.ok ? answer.json() : null;
    });
    const leader = members.members.find((one) => one.id === members.node);
    const follower = nodes.find((one) => one.id !== members.node);
    const page = await open(browser, address(follower), { hash: "#/topics/groups?x=1" });
    // The browser logs every answer with an error, such as those for services that a cluster does not have.
    page.quiet = true;
    await shows(page, "There is no consumer group");
    await shows(page, "passes requests to the leader");
    const link = await page.evaluate(() => document.querySelector(".member-note a").href);
    assert.equal(link, `http://${leader.http}/ui/#/topics/groups?x=1`);
    await checkAccessibility(page, "a page of a member that does not lead");
    await page.evaluate(() => (location.hash = "#/node/cluster"));
    await shows(page, "Blocks behind");
    await page.goto(link);
    await shows(page, "There is no consumer group");
    assert.equal(await page.evaluate(() => document.querySelector(".member-note")), null, "the leader says nothing");
    await page.end();
  },

  async many({ browser, node }) {
    const page = await open(browser, node.http, { hash: "#/mailboxes?prefix=big/" });
    await shows(page, "worker-00000");
    const rows = () => page.evaluate(() => document.querySelectorAll("tbody tr").length);
    assert.equal(await rows(), 100, "the first hundred rows");
    await page.evaluate(() => (location.hash = "#/agents?filter=big/fleet"));
    await shows(page, "worker-00000");
    assert.equal(await rows(), 100);
    await page.evaluate(() => [...document.querySelectorAll("button")].find((one) => one.textContent === "Show more").click());
    await until("more rows are shown", async () => (await rows()) === 600);
    assert.deepEqual(page.problems, []);
    await page.end();
  },
};

const PICTURES_OF = [
  ["console-now", "#/now", "Disk sync", "light"],
  ["console-conversation", "#/conversations/default/default/trip-ulm-berlin?budget=120", "Booked: X7F3", "light"],
  ["console-agent", "#/agents/acme/travel/planner?method=search", "Find connections", "dark"],
  ["console-topic", "#/topics/topic/orders", "customer-", "light"],
  ["console-group", "#/topics/groups/billing?tab=reset&to=shift&by=-10", "--shift-by -10 --dry-run", "light"],
  ["console-mailbox", "#/mailboxes/acme/jobs/resize?show=dead", "photo-0.jpg", "light"],
  ["console-node", "#/node", "Write amplification", "light"],
];

async function takePictures({ browser, node, api }) {
  mkdirSync(PICTURES, { recursive: true });
  const busy = { is: true };
  const load = (async () => {
    for (let index = 0; busy.is; index += 1) {
      const wave = 6 + Math.round(5 * Math.sin(index / 9));
      await Promise.all([
        ...Array.from({ length: wave }, () => api.ask("POST", "/v1/acme/travel/agents/planner/request", "{}", { "content-type": "application/json" })),
        ...Array.from({ length: Math.ceil(wave / 2) }, () => api.ask("POST", "/v1/acme/support/agents/writer/send", "x", { "content-type": "text/plain" })),
        api.append("load", [{ role: "user", content: "x" }]),
        api.ask("POST", "/v1/take", { subject: `acme/support/${index % 4 === 0 ? "triage" : `bot-${index % 40}`}`, cost: { requests: 1 } }),
      ]);
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  })();
  await until("the charts have points", async () => (await api.ask("GET", "/v1/history")).time_unix_ms.length >= 18, 180_000);
  for (const [name, hash, text, theme] of PICTURES_OF) {
    const page = await open(browser, node.http, { theme, hash });
    await shows(page, text);
    await page.waitForNetworkIdle({ idleTime: 300, concurrency: 2, timeout: 3_000 }).catch(() => undefined);
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
    await page.end();
  }
  busy.is = false;
  await load;
  await demoPicture({ browser, world }, join(PICTURES, "console-agents.png"));
  await clusterPicture({ browser, world }, join(PICTURES, "console-cluster.png"));
}

const world = new World(program);
let browser;
let failed = 0;
try {
  const node = await world.serve("main");
  const api = await fill(world, node, { mailboxes: withPictures ? 0 : 2_000 });
  browser = await launch();
  const given = { browser, node, api, world, pages: PAGES };
  if (withPictures) await takePictures(given);
  for (const [name, test] of Object.entries({ ...tests, ...loadTests, ...placeTests })) {
    if (wanted.length > 0 ? !wanted.includes(name) : withPictures) continue;
    const start = Date.now();
    try {
      await test(given);
      console.log(`ok ${name} (${((Date.now() - start) / 1_000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack}`);
    }
  }
} finally {
  await browser?.close();
  await world.close();
}
process.exit(failed === 0 ? 0 : 1);
