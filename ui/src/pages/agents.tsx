// Agents: names as a tree, and one agent with its instances, methods, mailbox, limits and a form that
// calls it.

import { useMemo, useRef, useState } from "preact/hooks";
import { Problem, callNode, eventsOf, getJson, inNamespace, problemOf, send } from "../api";
import { count, duration, pretty, quoted, visible } from "../format";
import { useRead, useTitle } from "../hooks";
import { Badge, Body, Check, Command, Crumbs, Empty, Failure, Field, Input, Json, Page, Section, Select, Shown, Stat, Stats, Table } from "../parts";
import { href, partsOf, route, setQuery } from "../route";
import { useStore } from "../store";
import { LimitStates, type LimitState } from "./quotas";

interface Instance {
  instance: string;
  connection: number;
  remote: string;
  delivered: number;
  dropped: number;
  version?: string | null;
  differs?: boolean;
}

interface Agent {
  name: string;
  undeliverable: number;
  // At most the first thousand.
  instances: Instance[];
  instance_count: number;
}

export interface Mailbox {
  name: string;
  messages: number;
  dead: number;
  bytes: number;
  unanswered: number;
  oldest: number | null;
}

interface Method {
  name: string;
  description?: string;
  stream: boolean;
  input?: unknown;
  output?: unknown;
}

interface Description {
  version?: string;
  description?: string;
  methods: Method[];
}

// An agent of a list.
interface Listed {
  name: string;
  undeliverable: number;
  instance_count: number;
  delivered: number;
  description?: string;
  method_count?: number;
}

// A page of names: agents and mailboxes.
interface Names {
  agents: Listed[];
  mailboxes: Mailbox[];
  // The name from which the next page continues.
  next: string | null;
}

const PAGE = 1_000;

async function readMailboxes(prefix: string, after: string, limit: number, signal: AbortSignal): Promise<Mailbox[]> {
  try {
    return (await callNode<{ mailboxes: Mailbox[] }>("mailboxes", { prefix, after, limit }, signal)).mailboxes;
  } catch (error) {
    // A node without storage, or a member of a cluster, has no mailboxes.
    if (error instanceof Problem) return [];
    throw error;
  }
}

// Reads the names behind `after`, as far as both lists reach.
async function readNames(prefix: string, after: string, signal: AbortSignal): Promise<Names> {
  const query = new URLSearchParams({ summary: "true", limit: String(PAGE), prefix, ...(after === "" ? {} : { after }) });
  const [{ agents, next }, mailboxes] = await Promise.all([
    getJson<{ agents: Listed[]; next?: string }>(`/v1/agents?${query}`, { signal, isShared: true }),
    readMailboxes(prefix, after, PAGE, signal),
  ]);
  const ends = [next, mailboxes.length === PAGE ? mailboxes.at(-1)?.name : undefined].filter((end) => end !== undefined);
  const end = ends.length === 0 ? null : ends.reduce((one, other) => (one < other ? one : other));
  const isInPage = ({ name }: { name: string }): boolean => end === null || name <= end;
  return { agents: agents.filter(isInPage), mailboxes: mailboxes.filter(isInPage), next: end };
}

async function readDenied(signal: AbortSignal): Promise<Map<string, number>> {
  const { rows } = await getJson<{ rows: { name: string; count: number }[] }>("/v1/top?by=denied&count=1000", { signal, isShared: true });
  const found = new Map<string, number>();
  for (const row of rows) found.set(row.name, (found.get(row.name) ?? 0) + row.count);
  return found;
}

export function AgentsPage() {
  const { path } = useStore(route);
  const [, org, namespace, agent] = path;
  if (org && namespace && agent) return <OneAgent key={path.join("/")} org={org} namespace={namespace} agent={agent} />;
  return <AllAgents />;
}

interface Row {
  name: string;
  agent: Listed | undefined;
  mailbox: Mailbox | undefined;
  denied: number;
}

// A namespace with more rows is closed at first, and so are all of many namespaces.
const OPEN_ROWS_MAX = 60;
const OPEN_NAMESPACES_MAX = 20;

function AllAgents() {
  useTitle("Agents");
  const { query } = useStore(route);
  const filter = query["filter"] ?? "";
  const withSystem = query["system"] === "1";
  const prefix = query["prefix"] ?? "";
  const after = query["after"] ?? "";
  const names = useRead(`names ${prefix} ${after}`, (signal) => readNames(prefix, after, signal), 5_000, true);
  const denied = useRead("denied", readDenied, 10_000);
  const groups = useMemo(() => {
    const rows = new Map<string, Row>();
    const rowOf = (name: string): Row => {
      const known = rows.get(name);
      if (known) return known;
      const made: Row = { name, agent: undefined, mailbox: undefined, denied: denied.value?.get(name) ?? 0 };
      rows.set(name, made);
      return made;
    };
    for (const agent of names.value?.agents ?? []) rowOf(agent.name).agent = agent;
    for (const mailbox of names.value?.mailboxes ?? []) rowOf(mailbox.name).mailbox = mailbox;
    const shown = [...rows.values()].filter((row) => (withSystem || !row.name.startsWith("telpher/")) && row.name.includes(filter));
    shown.sort((one, other) => (one.name < other.name ? -1 : 1));
    const found = new Map<string, Row[]>();
    for (const row of shown) {
      const place = row.name.split("/").slice(0, 2).join("/");
      const list = found.get(place);
      if (list) list.push(row);
      else found.set(place, [row]);
    }
    return found;
  }, [names.value, denied.value, filter, withSystem]);
  const total = [...groups.values()].reduce((sum, rows) => sum + rows.length, 0);
  return (
    <Page title="Agents" lead="Names that are subscribed now, or for which messages wait.">
      <div class="bar-of-fields">
        <Input label="Names that begin with" type="search" value={prefix} placeholder="acme/" onChange={(value) => setQuery({ prefix: value, after: "" })} />
        <Input label="Contains" type="search" value={filter} placeholder="planner" onChange={(value) => setQuery({ filter: value })} />
        <Check label="Show agents of the node itself" value={withSystem} onChange={(value) => setQuery({ system: value ? 1 : "" })} />
      </div>
      <Shown read={names}>
        {() =>
          total === 0 ? (
            <div class="panel">
              <Empty title={filter || prefix ? "No name of this page contains this text" : "No agent is connected"}>
                {!filter && !prefix && (
                  <>
                    <p>Start one that answers with what it gets:</p>
                    <Command text="telpher listen acme/demo/echo --echo" />
                  </>
                )}
              </Empty>
            </div>
          ) : (
            <div class="tree">
              {[...groups].map(([place, rows]) => (
                <Namespace key={place} place={place} rows={rows} isOpen={groups.size === 1 || (rows.length <= OPEN_ROWS_MAX && groups.size <= OPEN_NAMESPACES_MAX)} />
              ))}
            </div>
          )
        }
      </Shown>
      {(names.value?.next || after) && (
        <p class="more row">
          {after && <a href={href(["agents"], { prefix, filter })}>First page</a>}
          {names.value?.next && <a href={href(["agents"], { prefix, filter, after: names.value.next })}>Next page</a>}
          <span class="note">{count(PAGE)} names at most on a page</span>
        </p>
      )}
    </Page>
  );
}

function Namespace({ place, rows, isOpen }: { place: string; rows: Row[]; isOpen: boolean }) {
  const sum = (of: (row: Row) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const instances = sum((row) => row.agent?.instance_count ?? 0);
  const waiting = sum((row) => row.mailbox?.messages ?? 0);
  const dead = sum((row) => row.mailbox?.dead ?? 0);
  const [wasOpened, setOpened] = useState(isOpen);
  return (
    <details class="panel branch" open={isOpen} onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary>
        <h2>{visible(place)}</h2>
        <span class="note">
          {count(rows.length)} {rows.length === 1 ? "name" : "names"} · {count(instances)} {instances === 1 ? "instance" : "instances"}
          {waiting > 0 && ` · ${count(waiting)} waiting`}
        </span>
        {dead > 0 && <Badge tone="bad">{count(dead)} dead</Badge>}
      </summary>
      {wasOpened && (
        <Table
          label={`Agents of ${place}`}
          rows={rows}
          rowKey={(row) => row.name}
          empty={null}
          columns={[
            {
              title: "Agent",
              text: (row) => row.name,
              class: "grow",
              cell: (row) => (
                <>
                  <a class="name" href={href(["agents", ...partsOf(row.name)])}>{visible(row.name.split("/").slice(2).join("/"))}</a>
                  {row.agent?.description && <span class="note clip"> {visible(row.agent.description)}</span>}
                </>
              ),
            },
            { title: "Methods", number: (row) => row.agent?.method_count ?? 0, cell: (row) => row.agent?.method_count ?? "–" },
            {
              title: "Instances",
              number: (row) => row.agent?.instance_count ?? 0,
              cell: (row) => {
                const connected = row.agent?.instance_count ?? 0;
                return connected === 0 ? <Badge tone={row.mailbox?.messages ? "warn" : "info"}>offline</Badge> : count(connected);
              },
            },
            { title: "Delivered", number: delivered, cell: (row) => count(delivered(row)) },
            { title: "Waiting", number: (row) => row.mailbox?.messages ?? 0, cell: (row) => count(row.mailbox?.messages ?? 0) },
            { title: "In delivery", number: (row) => row.mailbox?.unanswered ?? 0, cell: (row) => count(row.mailbox?.unanswered ?? 0) },
            { title: "Dead", number: (row) => row.mailbox?.dead ?? 0, cell: (row) => toned(row.mailbox?.dead ?? 0) },
            { title: "Undelivered", number: (row) => row.agent?.undeliverable ?? 0, cell: (row) => toned(row.agent?.undeliverable ?? 0) },
            { title: "Denied", number: (row) => row.denied, cell: (row) => toned(row.denied) },
          ]}
        />
      )}
    </details>
  );
}

function delivered(row: Row): number {
  return row.agent?.delivered ?? 0;
}

function toned(value: number) {
  return value > 0 ? <span class="warn-text">{count(value)}</span> : count(value);
}

function OneAgent({ org, namespace, agent }: { org: string; namespace: string; agent: string }) {
  const name = `${org}/${namespace}/${agent}`;
  useTitle(name);
  const agents = useRead(`agent ${name}`, async (signal) => {
    // The name itself is the first of those that begin with it.
    const { agents } = await getJson<{ agents: Agent[] }>(`/v1/agents?limit=2&prefix=${encodeURIComponent(name)}`, { signal, isShared: true });
    return agents.find((one) => one.name === name) ?? null;
  }, 5_000);
  const described = useRead(`description ${name}`, async (signal) => {
    const answer = await send(inNamespace(org, namespace, "agents", agent, "description"), { signal });
    if (answer.status === 404) return null;
    if (!answer.ok) throw await problemOf(answer);
    return (await answer.json()) as Description;
  }, 15_000);
  const mailbox = useRead(`mailbox ${name}`, async (signal) => (await readMailboxes(name, "", 1, signal)).find((one) => one.name === name) ?? null, 5_000);
  const limits = useRead(`limits ${name}`, (signal) => getJson<{ limits: LimitState[] }>(inNamespace("quota", org, namespace, agent), { signal }), 5_000);
  const instances = agents.value?.instances ?? [];
  const known = mailbox.value;
  return (
    <Page
      title={visible(name)}
      lead={described.value?.description ? visible(described.value.description) : undefined}
      actions={described.value?.version ? <Badge>version {visible(described.value.version)}</Badge> : undefined}
    >
      <Crumbs items={[["Agents", ["agents"]], [name, null]]} />
      <Stats>
        <Stat label="Instances" value={agents.value === undefined ? "–" : instances.length === 0 ? "offline" : count(agents.value?.instance_count ?? 0)} tone={agents.value !== undefined && instances.length === 0 ? "warn" : undefined} />
        <Stat label="Delivered" value={count(instances.reduce((sum, one) => sum + one.delivered, 0))} />
        <Stat label="Dropped" value={count(instances.reduce((sum, one) => sum + one.dropped, 0))} />
        <Stat label="Undelivered" value={count(agents.value?.undeliverable ?? 0)} hint="no subscriber" />
        <Stat label="Waiting" value={count(known?.messages ?? 0)} hint="in the mailbox" />
        <Stat label="Dead letters" value={count(known?.dead ?? 0)} tone={known?.dead ? "bad" : undefined} />
      </Stats>
      {known && (known.messages > 0 || known.dead > 0) && (
        <p><a href={href(["mailboxes", org, namespace, agent])}>Open its mailbox</a></p>
      )}
      <div class="columns">
        <Section title="Methods" note="as the agent describes itself">
          <Shown read={described}>
            {(value) =>
              value && value.methods.length > 0 ? (
                <ul class="methods">
                  {value.methods.map((method) => (
                    <li key={method.name}>
                      <details>
                        <summary>
                          <span class="name">{visible(method.name || "(plain message)")}</span>
                          {method.stream && <Badge tone="info">stream</Badge>}
                          <span class="note clip">{visible(method.description ?? "")}</span>
                        </summary>
                        <p><a href={href(["agents", org, namespace, agent], { method: method.name })}>Try this method</a></p>
                        {method.input !== undefined && method.input !== null && (<><p class="label">Input</p><Json value={method.input} /></>)}
                        {method.output !== undefined && method.output !== null && (<><p class="label">Output</p><Json value={method.output} /></>)}
                      </details>
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty title="The agent does not describe itself">
                  <p>It may be called nevertheless. The SDKs send names of methods and their JSON Schemas.</p>
                </Empty>
              )
            }
          </Shown>
        </Section>
        <TryIt org={org} namespace={namespace} agent={agent} methods={described.value?.methods ?? []} />
      </div>
      <Section title="Instances" note={instances.length < (agents.value?.instance_count ?? 0) ? `the first ${count(instances.length)}` : undefined}>
        <Table
          label="Instances"
          rows={instances}
          rowKey={(row) => `${row.connection} ${row.instance}`}
          empty={<Empty title="No instance is connected" />}
          columns={[
            { title: "Instance", text: (row) => row.instance, cell: (row) => <span class="name">{visible(row.instance)}</span> },
            { title: "Version", text: (row) => row.version ?? "", cell: (row) => (row.version ? visible(row.version) : "–") },
            { title: "Address", text: (row) => row.remote, cell: (row) => <span class="name">{visible(row.remote)}</span> },
            { title: "Connection", number: (row) => row.connection, cell: (row) => row.connection },
            { title: "Delivered", number: (row) => row.delivered, cell: (row) => count(row.delivered) },
            { title: "Dropped", number: (row) => row.dropped, cell: (row) => toned(row.dropped) },
          ]}
        />
      </Section>
      <Section title="Limits" note="of this subject">
        <Shown read={limits}>{(value) => <LimitStates limits={value.limits} />}</Shown>
      </Section>
    </Page>
  );
}

// Returns an example of a value of a JSON Schema.
export function example(schema: unknown, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null || depth > 6) return null;
  const { type, properties, items, enum: words, default: standard, examples, example: one } = schema as Record<string, unknown>;
  if (standard !== undefined) return standard;
  if (one !== undefined) return one;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (Array.isArray(words) && words.length > 0) return words[0];
  const kind = Array.isArray(type) ? type[0] : type;
  if (kind === "object" || (kind === undefined && properties)) {
    const made: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries((properties ?? {}) as Record<string, unknown>)) made[name] = example(inner, depth + 1);
    return made;
  }
  if (kind === "array") return items ? [example(items, depth + 1)] : [];
  if (kind === "string") return "";
  if (kind === "integer" || kind === "number") return 0;
  if (kind === "boolean") return false;
  return null;
}

interface Outcome {
  status: number;
  took_ms: number;
  items: string[];
  text: string | null;
  error: Error | null;
}

const MODES = [
  ["request", "Request: wait for the answer"],
  ["stream", "Request: show items as they come"],
  ["send", "Send: a one-way message"],
  ["write", "Write: a message that waits"],
] as const;

// A form that sends a message to the agent, and shows the outcome.
function TryIt({ org, namespace, agent, methods }: { org: string; namespace: string; agent: string; methods: Method[] }) {
  const { query } = useStore(route);
  const name = `${org}/${namespace}/${agent}`;
  const method = query["method"] ?? methods[0]?.name ?? "";
  const described = methods.find((one) => one.name === method);
  const mode = query["mode"] ?? (described?.stream ? "stream" : "request");
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [outcome, setOutcome] = useState<Outcome>();
  const running = useRef<AbortController | undefined>(undefined);
  const [isRunning, setRunning] = useState(false);
  const suggested = described?.input ? pretty(example(described.input)) : "";
  const text = texts[method] ?? suggested;
  const methodText = method === "" ? "" : ` --method ${quoted(method)}`;
  const body = quoted(text.replaceAll(/\s*\n\s*/g, " "));
  const commands: Record<string, string> = {
    request: `telpher request ${name} ${body}${methodText}`,
    stream: `telpher request ${name} ${body}${methodText} --stream`,
    send: `telpher send ${name} ${body}${methodText}`,
    write: `telpher write ${name} ${body}${methodText}`,
  };

  const call = async (): Promise<void> => {
    const abort = new AbortController();
    running.current = abort;
    setRunning(true);
    const start = performance.now();
    const done = (change: Partial<Outcome>): void => {
      setOutcome((old) => ({ status: 0, items: [], text: null, error: null, ...old, ...change, took_ms: performance.now() - start }));
    };
    setOutcome(undefined);
    try {
      const isCall = mode === "request" || mode === "stream";
      const verb = isCall ? "request" : mode;
      const rest = isCall && method !== "" ? [verb, method] : [verb];
      const address = inNamespace(org, namespace, "agents", agent, ...rest);
      const parameters = !isCall && method !== "" ? `?method=${encodeURIComponent(method)}` : "";
      const headers: Record<string, string> = { "content-type": /^\s*[{[]/.test(text) ? "application/json" : "text/plain; charset=utf-8" };
      if (mode === "stream") headers["accept"] = "text/event-stream";
      const answer = await send(address + parameters, { method: "POST", body: text, headers, signal: abort.signal });
      if (!answer.ok) throw await problemOf(answer);
      if (mode === "stream") {
        const items: string[] = [];
        for await (const event of eventsOf(answer)) {
          const data = JSON.parse(event.data) as { body?: string; body_base64?: string; detail?: string };
          if (event.event === "item") items.push(data.body ?? `(base64) ${data.body_base64 ?? ""}`);
          if (event.event === "error") throw new Error(data.detail ?? "the agent failed");
          done({ status: answer.status, items: [...items] });
        }
      } else {
        done({ status: answer.status, text: await answer.text() });
      }
    } catch (error) {
      if (!abort.signal.aborted) done({ error: error instanceof Error ? error : new Error(String(error)) });
    } finally {
      setRunning(false);
    }
  };

  return (
    <Section title="Try it" note="sends a real message">
      <form
        class="try"
        onSubmit={(event) => {
          event.preventDefault();
          void call();
        }}
      >
        <div class="bar-of-fields">
          {methods.length > 0 ? (
            <Select label="Method" value={method} options={methods.map((one) => [one.name, one.name || "(plain message)"] as const)} onChange={(value) => setQuery({ method: value })} />
          ) : (
            <Input label="Method (optional)" value={method} onChange={(value) => setQuery({ method: value })} />
          )}
          <Select label="How" value={mode} options={MODES} onChange={(value) => setQuery({ mode: value })} />
        </div>
        <Field label="Body">
          {(id) => <textarea id={id} rows={6} spellcheck={false} value={text} onInput={(event) => setTexts({ ...texts, [method]: event.currentTarget.value })} />}
        </Field>
        <div class="row">
          <button type="submit" class="primary" disabled={isRunning}>{isRunning ? "Waiting…" : "Send"}</button>
          {isRunning && <button type="button" onClick={() => running.current?.abort()}>Cancel</button>}
          <Command text={commands[mode] ?? ""} />
        </div>
      </form>
      {outcome && (
        <div class="outcome" aria-live="polite">
          {outcome.error ? (
            <Failure error={outcome.error} />
          ) : (
            <p class="row">
              <Badge tone="good">{outcome.status}</Badge> <span class="note">{duration(outcome.took_ms)}</span>
            </p>
          )}
          {outcome.text !== null && (outcome.text === "" ? <p class="note">The answer is empty.</p> : <Body text={outcome.text} />)}
          {outcome.items.map((item, index) => <Body key={index} text={item} />)}
        </div>
      )}
    </Section>
  );
}
