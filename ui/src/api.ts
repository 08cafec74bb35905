// Requests to the node that served this page. A token is kept in memory only, and ends with the tab.

import { Store } from "./store";

// The answer of a node to a request that it refuses: an RFC 9457 problem document.
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly document: Record<string, unknown>;

  constructor(status: number, document: Record<string, unknown>) {
    const detail = typeof document["detail"] === "string" ? document["detail"] : `the node answered with the status ${status}`;
    super(detail);
    this.status = status;
    this.code = typeof document["code"] === "string" ? document["code"] : "";
    this.document = document;
  }
}

// The node did not answer at all.
export class Unreachable extends Error {
  constructor() {
    super("the node does not answer");
  }
}

export type Link = "online" | "offline";

// Whether the node answers.
export const link = new Store<Link>("online");

// Grows whenever everything should be read again: after the node came back, or with another token.
export const epoch = new Store(0);

// True while the node asks for a token, or refused the one that was entered.
export const tokenWanted = new Store(false);

// True after the visitor closed the question for a token.
export const tokenRefused = new Store(false);

export const hasToken = new Store(false);

let token = "";

export function setToken(text: string): void {
  token = text.trim();
  hasToken.set(token !== "");
  tokenWanted.set(false);
  tokenRefused.set(false);
  epoch.set(epoch.value + 1);
}

export interface Options {
  method?: string;
  headers?: Record<string, string>;
  // A value that is sent as JSON.
  json?: unknown;
  // A body that is sent as it is.
  body?: string;
  signal?: AbortSignal;
  // An answer may be a second old: the node then collects it once for all open pages.
  isShared?: boolean;
}

// Sends a request and returns its answer with any status.
export async function send(path: string, options: Options = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const sent = token;
  if (token !== "") headers.set("authorization", `Bearer ${token}`);
  const request: RequestInit = { method: options.method ?? "GET", headers, cache: "no-store", credentials: "omit" };
  if (options.signal) request.signal = options.signal;
  if (options.isShared) headers.set("cache-control", "max-age=1");
  if (options.json !== undefined) {
    headers.set("content-type", "application/json");
    request.body = JSON.stringify(options.json);
  } else if (options.body !== undefined) {
    request.body = options.body;
  }
  let answer: Response;
  try {
    answer = await fetch(path, request);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    lost();
    throw new Unreachable();
  }
  // An answer to an earlier token says nothing about the current one.
  if (answer.status === 401 && sent === token && !tokenRefused.value) tokenWanted.set(true);
  return answer;
}

// Sends a request and returns its answer; a refusal is an exception.
async function accepted(path: string, options: Options): Promise<Response> {
  const answer = await send(path, options);
  if (answer.ok) return answer;
  throw await problemOf(answer);
}

export async function problemOf(answer: Response): Promise<Problem> {
  let document: Record<string, unknown> = {};
  try {
    const read: unknown = await answer.json();
    if (typeof read === "object" && read !== null) document = read as Record<string, unknown>;
  } catch {
    // A proxy may answer with something else.
  }
  return new Problem(answer.status, document);
}

export async function getJson<T>(path: string, options: Options = {}): Promise<T> {
  const answer = await accepted(path, options);
  return (await answer.json()) as T;
}

export async function getText(path: string, options: Options = {}): Promise<string> {
  return (await accepted(path, options)).text();
}

// Calls a method of the node's own agent, whose answers are JSON.
export async function callNode<T>(method: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const options: Options = { method: "POST", json: body };
  if (signal) options.signal = signal;
  return getJson<T>(`/v1/telpher/system/agents/node/request/${method}`, options);
}

// Returns the path of a resource in the namespace of a name.
export function inNamespace(org: string, namespace: string, ...rest: string[]): string {
  return ["/v1", org, namespace, ...rest].map((part, index) => (index === 0 ? part : encodeURIComponent(part))).join("/");
}

let probing = false;

// Notes that the node did not answer, and asks until it does.
function lost(): void {
  link.set("offline");
  if (probing) return;
  probing = true;
  void (async () => {
    for (let attempt = 0; ; attempt += 1) {
      await pause(Math.min(500 * 2 ** attempt, 5_000));
      try {
        const answer = await fetch("/livez", { cache: "no-store", signal: AbortSignal.timeout(4_000) });
        if (answer.ok) break;
      } catch {
        // It is still away.
      }
    }
    probing = false;
    link.set("online");
    epoch.set(epoch.value + 1);
  })();
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export interface ServerEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

// Reads the events of one answer.
export async function* eventsOf(answer: Response): AsyncGenerator<ServerEvent> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      for (;;) {
        const end = rest.indexOf("\n\n");
        if (end < 0) break;
        const event = parseEvent(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parseEvent(text: string): ServerEvent | null {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: data.join("\n") };
}

// Follows a stream of events until the signal aborts. After an interruption it continues behind the
// last event.
export async function follow(
  path: string,
  signal: AbortSignal,
  onEvent: (event: ServerEvent) => void,
  onProblem: (problem: Problem) => void,
): Promise<void> {
  let last: string | null = null;
  for (let failures = 0; !signal.aborted; ) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last !== null) headers["last-event-id"] = last;
      const answer = await send(path, { headers, signal });
      if (!answer.ok) throw await problemOf(answer);
      for await (const event of eventsOf(answer)) {
        failures = 0;
        if (event.id !== null) last = event.id;
        onEvent(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem) {
        onProblem(error);
        if (error.status < 500 && error.status !== 429) return;
      }
    }
    failures += 1;
    await pause(Math.min(500 * 2 ** failures, 10_000), signal);
  }
}
