// Pages of the console in Chromium, and what they are checked for.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";
import { until } from "./world.mjs";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const AXE = readFileSync(join(root, "node_modules/axe-core/axe.min.js"), "utf8");
export const SIZES = { desktop: { width: 1280, height: 860 }, phone: { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 } };

// Largest answer that a page may ask for, in bytes.
export const ANSWER_MAX = 1_000_000;

export function launch() {
  return puppeteer.launch({ executablePath: chromium(), acceptInsecureCerts: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"] });
}

// The path of the browser, which the library does not look for.
function chromium() {
  const found = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "chromium")).find((path) => existsSync(path));
  if (!found) throw new Error("chromium is missing\nhint: cargo xtask setup");
  return found;
}

export const shows = (page, text) =>
  until(`the page shows "${text}"`, () => page.evaluate((wanted) => document.body.innerText.includes(wanted), text), 30_000).catch(async (error) => {
    const seen = await page.evaluate(() => document.body.innerText.slice(0, 1_500));
    throw new Error(`${error.message}; it shows:\n${seen}`);
  });

// Opens a page that fails the test if it logs an error or asks another host, and counts its requests.
export async function open(browser, base, { size = "desktop", theme = "light", hash = "#/now" } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !page.quiet) problems.push(`${message.text()} (${message.location()?.url ?? ""})`);
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !url.startsWith("data:")) problems.push(`a request to ${url}`);
  });
  page.traffic = await countTraffic(page);
  await page.setViewport(SIZES[size]);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.goto(`${base}/ui/${hash}`);
  page.problems = problems;
  page.end = () => context.close();
  return page;
}

// The requests of a page: address, method, headers, body, bytes of the answer.
class Traffic {
  requests = new Map();

  // Answers that end: those of the API, without event streams and the files of the console.
  get answers() {
    return [...this.requests.values()].filter((one) => !one.isStream && !one.path.startsWith("/ui/"));
  }

  get largest() {
    return this.answers.reduce((largest, one) => (one.size > largest.size ? one : largest), { size: 0, path: "" });
  }

  check(name) {
    const { size, path } = this.largest;
    assert.ok(size <= ANSWER_MAX, `${name}: the answer to ${path} has ${size} bytes`);
  }
}

async function countTraffic(page) {
  const traffic = new Traffic();
  const session = await page.createCDPSession();
  await session.send("Network.enable");
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers, postData: body } = request;
    traffic.requests.set(requestId, { path: pathname + search, method, headers, body, size: 0, isStream: false });
  });
  session.on("Network.responseReceived", ({ requestId, response }) => {
    const one = traffic.requests.get(requestId);
    if (one && response.mimeType === "text/event-stream") one.isStream = true;
  });
  session.on("Network.dataReceived", ({ requestId, dataLength }) => {
    const one = traffic.requests.get(requestId);
    if (one) one.size += dataLength;
  });
  return traffic;
}

export async function checkAccessibility(page, name) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const text = violations.map((one) => `${one.id}: ${one.help}\n    ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.any.map((any) => any.message).join("; ")}`).join("\n    ")}`);
  assert.deepEqual(text, [], `axe on ${name}`);
}

export async function checkFits(page, name) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(content <= window, `${name} is ${content} wide in a window of ${window}`);
}

export function visit(page, hash) {
  return page.evaluate((next) => (location.hash = next), hash);
}
