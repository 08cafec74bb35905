// Tests of the console where it is found: a cluster, `telpher demo --ui`, `telpher serve --dev`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { checkAccessibility, checkFits, open, shows, visit } from "./page.mjs";
import { ended, until } from "./world.mjs";

// Reads lines of a program until one has what `find` looks for, which is returned.
function lineWith(child, find) {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = find(line);
      if (found) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`the program ended with ${code}`)));
  });
}

// Three members on loopback. They end with `close`.
async function startCluster(world) {
  // The members end when the input of the command ends.
  const child = spawn(world.program, ["cluster", "dev", "--nodes", "3", "--json"], { stdio: ["pipe", "pipe", "inherit"], cwd: world.directory, env: { ...process.env, HOME: world.directory } });
  const again = [];
  try {
    const { nodes } = JSON.parse(await lineWith(child, (line) => line));
    const members = nodes.map((node) => ({ ...node, http: `http://${node.http}` }));
    return {
      members,
      // Starts a killed member again.
      start: (member) => again.push(spawn(member.command[0], [...member.command.slice(1), "--end-with-stdin"], { stdio: ["pipe", "ignore", "ignore"] })),
      close: async () => {
        for (const one of again) one.stdin.end();
        child.stdin.end();
        await Promise.all([child, ...again].map((one) => (one.exitCode === null && one.signalCode === null ? ended(one) : null)));
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

const status = async (member) => {
  const answer = await fetch(`${member.http}/v1/telpher/system/agents/node/request/cluster`, { method: "POST", body: "{}", headers: { "content-type": "application/json" }, signal: AbortSignal.timeout(5_000) });
  return answer.ok ? answer.json() : null;
};

async function produce(member, count) {
  const send = (method, path, body) => fetch(member.http + path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  await send("POST", "/v1/topics", { name: "orders", partitions: 6 });
  const answer = await send("POST", "/v1/topics/orders/records", Array.from({ length: count }, (_, index) => ({ key: `customer-${index % 9}`, value: { order: index } })));
  assert.equal(answer.status, 200);
}

const rowOf = (page, id) => page.evaluate((wanted) => [...document.querySelectorAll('[aria-label="Members"] tbody tr')].find((row) => row.children[1].textContent === wanted)?.innerText ?? "", String(id));

export async function clusterPicture({ browser, world }, path) {
  const cluster = await startCluster(world);
  try {
    await produce(cluster.members[0], 200);
    const page = await open(browser, cluster.members[0].http, { hash: "#/node/cluster" });
    await shows(page, "in sync");
    await page.waitForNetworkIdle({ idleTime: 300, concurrency: 2, timeout: 3_000 }).catch(() => undefined);
    await page.screenshot({ path });
    await page.end();
  } finally {
    await cluster.close();
  }
}

// Starts the demo with its console.
async function startDemo(world) {
  const child = world.spawn(["demo", "--ui"]);
  const url = await lineWith(child, (line) => /open the console in a browser: (\S+)/.exec(line)?.[1]);
  return { child, base: url.replace(/\/ui\/$/, "") };
}

export async function demoPicture({ browser, world }, path) {
  const { child, base } = await startDemo(world);
  const page = await open(browser, base, { hash: "#/agents" });
  await shows(page, "researcher");
  await shows(page, "attic");
  await page.screenshot({ path });
  await page.end();
  child.kill("SIGINT");
  await ended(child);
}

export const placeTests = {
  // The page of a cluster at the leader and at a follower, while a member is killed and comes back, and
  // while the leader is killed.
  async cluster({ browser, world }) {
    const cluster = await startCluster(world);
    try {
      const { leader } = await until("a leader", () => status(cluster.members[0]));
      const first = cluster.members.find((one) => one.id === leader);
      const [follower, third] = cluster.members.filter((one) => one.id !== leader);
      await produce(first, 100);
      const pages = [];
      for (const member of [first, follower]) {
        const page = await open(browser, member.http, { hash: "#/node/cluster" });
        page.quiet = true;
        for (const { id } of cluster.members) await until(`member ${id} is shown in sync`, async () => (await rowOf(page, id)).includes("in sync") && !(await rowOf(page, id)).includes("not in sync"));
        await checkAccessibility(page, "cluster");
        await checkFits(page, "cluster");
        pages.push(page);
      }
      process.kill(third.pid, "SIGKILL");
      for (const page of pages) {
        await page.bringToFront();
        await until("the killed member is shown", async () => (await rowOf(page, third.id)).includes("not in sync"));
      }
      await produce(first, 50);
      cluster.start(third);
      for (const page of pages) {
        await page.bringToFront();
        await until("the member is back", async () => (await rowOf(page, third.id)) !== "" && !(await rowOf(page, third.id)).includes("not in sync"));
      }
      // Other pages at the follower have what the leader has.
      const [, atFollower] = pages;
      await atFollower.bringToFront();
      for (const [hash, expected] of [["#/topics/topic/orders", "customer-"], ["#/node/metrics?filter=telpher_connections", "telpher_connections"], ["#/now", "Disk sync"], ["#/node", "Write amplification"]]) {
        await visit(atFollower, hash);
        await shows(atFollower, expected);
      }
      await visit(atFollower, "#/quotas");
      await shows(atFollower, "cluster");
      await visit(atFollower, "#/node/cluster");
      await shows(atFollower, "in sync");
      // The leader ends: the page at the follower goes on with the next one.
      process.kill(first.pid, "SIGKILL");
      await until("another member leads", async () => {
        const seen = await status(follower).catch(() => null);
        return seen !== null && seen.leader !== null && seen.leader !== leader;
      });
      await until("the page shows that the old leader is away", async () => (await rowOf(atFollower, leader)).includes("not in sync"));
      await until("the page has no banner", () => atFollower.evaluate(() => !document.querySelector(".banner")));
      for (const page of pages) {
        assert.deepEqual(page.problems, []);
        await page.end();
      }
    } finally {
      await cluster.close();
    }
  },

  // The demo's agents are seen while it runs.
  async demo({ browser, world }) {
    const { child, base } = await startDemo(world);
    const page = await open(browser, base, { hash: "" });
    await shows(page, "Last events");
    await shows(page, "Disk sync");
    await page.evaluate(() => [...document.querySelectorAll(".pages a")].find((one) => one.textContent.includes("Agents")).click());
    for (const name of ["researcher", "calculator", "writer"]) await shows(page, name);
    await page.evaluate(() => [...document.querySelectorAll("main a")].find((one) => one.textContent === "researcher").click());
    await shows(page, "Looks facts up.");
    await visit(page, "#/conversations/acme/desk/tea-time");
    await shows(page, "is there tea left?");
    await visit(page, "#/quotas/usage");
    await shows(page, "acme/desk/planner");
    await visit(page, "#/topics/topic/orders");
    await shows(page, "table-");
    assert.deepEqual(page.problems, []);
    await page.end();
    child.kill("SIGINT");
    assert.equal(await ended(child), 0);
  },

  // A new user opens the address in the banner.
  async banner({ browser, world }) {
    const none = ["--native-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--kafka-listen", "127.0.0.1:0", "--slim-listen", "none"];
    const child = world.spawn(["serve", "--dev", ...none]);
    const url = await lineWith(child, (line) => /Open the console in a browser: (\S+)/.exec(line)?.[1]);
    const page = await open(browser, url.replace(/\/ui\/$/, ""), { hash: "" });
    await shows(page, "Last events");
    await shows(page, "Ready");
    assert.deepEqual(page.problems, []);
    await page.end();
    child.kill("SIGINT");
    await ended(child);
  },
};
