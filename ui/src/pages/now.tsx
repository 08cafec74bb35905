// The node now, and in the last hour: rates, latencies, refusals, memory, the last events.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson } from "../api";
import { Chart } from "../chart";
import { bytes, clock, count, duration, rate, visible } from "../format";
import { useEvents, useRead, useTitle } from "../hooks";
import { Badge, Empty, Page, Section, Shown, Stat, Stats, Table } from "../parts";
import { href, partsOf } from "../route";

interface History {
  interval_ms: number;
  time_unix_ms: number[];
  series: Record<string, (number | null)[]>;
  failures: Record<string, number[]>;
}

interface Agents {
  agents: { name: string; instance_count: number }[];
  next?: string;
  connected: number;
  connected_instances: number;
}

// Names whose connections are among the last events.
const NAMES = 1_000;

const POINTS = 720;

// Appends the newer samples of `next` to `old`.
function joined(old: History, next: History): History {
  const last = old.time_unix_ms.at(-1) ?? 0;
  const from = next.time_unix_ms.findIndex((time) => time > last);
  if (from < 0) return old;
  const length = old.time_unix_ms.length;
  const append = <T,>(before: T[] | undefined, after: T[] | undefined, missing: T): T[] => {
    const padded = before ?? new Array<T>(length).fill(missing);
    const added = after?.slice(from) ?? new Array<T>(next.time_unix_ms.length - from).fill(missing);
    return [...padded, ...added].slice(-POINTS);
  };
  const series: History["series"] = {};
  for (const name of new Set([...Object.keys(old.series), ...Object.keys(next.series)])) {
    series[name] = append(old.series[name], next.series[name], null);
  }
  const failures: History["failures"] = {};
  for (const code of new Set([...Object.keys(old.failures), ...Object.keys(next.failures)])) {
    failures[code] = append(old.failures[code], next.failures[code], 0);
  }
  return { interval_ms: next.interval_ms, time_unix_ms: append(old.time_unix_ms, next.time_unix_ms, 0), series, failures };
}

function useHistory() {
  const known = useRef<History | undefined>(undefined);
  return useRead("history", async (signal) => {
    const last = known.current?.time_unix_ms.at(-1);
    // A gap means that the node restarted, or that the page slept: everything is read again.
    const missing = last === undefined ? POINTS : Math.ceil((Date.now() - last) / 5_000) + 2;
    const next = await getJson<History>(`/v1/history?last=${Math.max(1, Math.min(POINTS, missing))}`, { signal, isShared: true });
    const isContinued = known.current && missing < POINTS && (next.time_unix_ms[0] ?? 0) <= (last ?? 0);
    known.current = known.current && isContinued ? joined(known.current, next) : next;
    return known.current;
  }, 5_000);
}

export function NowPage() {
  useTitle("Now");
  const history = useHistory();
  const agents = useRead("agents", (signal) => getJson<Agents>(`/v1/agents?summary=true&limit=${NAMES}`, { signal, isShared: true }), 5_000);
  return (
    <Page title="Now" lead="The node now, and in the last hour. It keeps these numbers itself.">
      <Shown read={history}>{(value) => <Numbers history={value} agents={agents.value?.connected ?? 0} instances={agents.value?.connected_instances ?? 0} />}</Shown>
      <div class="columns">
        <Events agents={agents.value} />
        <Refused history={history.value} />
      </div>
    </Page>
  );
}

function Numbers({ history, agents, instances }: { history: History; agents: number; instances: number }) {
  const { time_unix_ms: times, series } = history;
  const values = (name: string): (number | null)[] => series[name] ?? times.map(() => null);
  const last = (name: string): number | null => values(name).at(-1) ?? null;
  const perSecond = (value: number | null): string => `${rate(value)}/s`;
  if (times.length === 0) {
    return (
      <div class="panel">
        <Empty title="The first numbers appear in a few seconds">
          <p>The node has just started. It takes a sample every five seconds.</p>
        </Empty>
      </div>
    );
  }
  const denied = last("denied");
  const failures = last("failures");
  return (
    <>
      <Stats>
        <Stat label="Requests" value={perSecond(last("requests"))} hint="calls of agents" />
        <Stat label="Messages" value={perSecond(last("messages"))} hint="in conversations" />
        <Stat label="Records" value={perSecond(last("records"))} hint="to disk" />
        <Stat label="Takes" value={perSecond(last("takes"))} hint={`${rate(denied)}/s denied`} tone={denied ? "warn" : undefined} />
        <Stat label="Failures" value={perSecond(failures)} hint="answered" tone={failures ? "warn" : undefined} />
        <Stat label="Agents" value={count(agents)} hint={`${count(instances)} instances`} />
        <Stat label="Connections" value={count(last("connections") ?? 0)} hint={`${count(last("pending_calls") ?? 0)} calls in flight`} />
        <Stat label="Memory" value={bytes(last("memory_bytes"))} hint={`${((last("cores") ?? 0) * 100).toFixed(0)} % of a core`} />
      </Stats>
      <div class="charts">
        <Chart
          title="Messages between agents" times={times} format={rate}
          summary={perSecond((last("requests") ?? 0) + (last("sends") ?? 0) + (last("writes") ?? 0))}
          lines={[
            { label: "requests", values: values("requests"), color: 0 },
            { label: "sends", values: values("sends"), color: 1 },
            { label: "writes", values: values("writes"), color: 2 },
          ]}
        />
        <Chart
          title="Stored" times={times} format={rate} summary={`${bytes(last("record_bytes"))}/s`}
          lines={[
            { label: "records", values: values("records"), color: 0 },
            { label: "messages", values: values("messages"), color: 1 },
          ]}
        />
        <Chart
          title="Quotas" times={times} format={rate} summary={perSecond(last("takes"))}
          lines={[
            { label: "takes", values: values("takes"), color: 0 },
            { label: "denied", values: values("denied"), color: 3 },
          ]}
        />
        <Chart
          title="HTTP latency" times={times} format={duration} summary={`p99 ${duration(last("http_p99_ms"))}`}
          lines={[
            { label: "p50", values: values("http_p50_ms"), color: 0 },
            { label: "p99", values: values("http_p99_ms"), color: 2 },
          ]}
        />
        <Chart
          title="Disk sync" times={times} format={duration} summary={`p99 ${duration(last("sync_p99_ms"))}`}
          lines={[
            { label: "p50", values: values("sync_p50_ms"), color: 0 },
            { label: "p99", values: values("sync_p99_ms"), color: 2 },
          ]}
        />
        <Chart title="Memory" times={times} format={bytes} summary={bytes(last("memory_bytes"))} lines={[{ label: "resident", values: values("memory_bytes"), color: 1 }]} />
      </div>
    </>
  );
}

// What was refused in the last hour, and why.
function Refused({ history }: { history: History | undefined }) {
  const rows = useMemo(() => {
    if (!history) return [];
    const seconds = history.interval_ms / 1_000;
    return Object.entries(history.failures).map(([code, rates]) => ({
      code,
      now: rates.at(-1) ?? 0,
      hour: Math.round(rates.reduce((sum, one) => sum + one, 0) * seconds),
      last: history.time_unix_ms[rates.findLastIndex((one) => one > 0)] ?? 0,
    }));
  }, [history]);
  return (
    <Section title="Refused in the last hour" note="failures answered, by code">
      <Table
        label="Failures by code"
        rows={rows}
        rowKey={(row) => row.code}
        sort={1}
        descending
        columns={[
          { title: "Code", text: (row) => row.code, cell: (row) => <a class="code" href={href(["node", "errors"], { code: row.code })}>{row.code}</a> },
          { title: "Last hour", number: (row) => row.hour, cell: (row) => count(row.hour) },
          { title: "Now", number: (row) => row.now, cell: (row) => `${rate(row.now)}/s` },
          { title: "Last seen", number: (row) => row.last, cell: (row) => clock(row.last) },
        ]}
        empty={<Empty title="Nothing was refused" />}
      />
    </Section>
  );
}

interface Happened {
  key: number;
  at: number;
  kind: string;
  about: string;
  detail: string;
  tone: "good" | "warn" | "bad" | "info";
}

const EVENTS = 50;

const KINDS: Record<string, [string, Happened["tone"]]> = {
  denied: ["denied", "warn"],
  threshold: ["threshold", "warn"],
  halted: ["halted", "bad"],
  resumed: ["resumed", "good"],
  policies: ["limits changed", "info"],
  factor: ["factor", "info"],
  override: ["override", "info"],
  "override-ended": ["override ended", "info"],
  reset: ["reset", "info"],
  missed: ["missed", "warn"],
};

// The last events as they come: those of quotas, and agents that appear and disappear.
function Events({ agents }: { agents: Agents | undefined }) {
  const [events, setEvents] = useState<Happened[]>([]);
  const next = useRef(0);
  const known = useRef<Agents | undefined>(undefined);
  const add = (happened: Omit<Happened, "key">): void => {
    next.current += 1;
    const key = next.current;
    setEvents((old) => [{ ...happened, key }, ...old].slice(0, EVENTS));
  };
  const problem = useEvents("/v1/watch", ({ event, data }) => {
    const kind = KINDS[event];
    if (!kind) return;
    const read = JSON.parse(data) as { at?: string; about?: string; limit?: string; share?: number; count?: number };
    const share = read.share === undefined ? "" : ` at ${(read.share * 100).toFixed(0)} %`;
    add({
      at: read.at ? Date.parse(read.at) : Date.now(),
      kind: kind[0],
      tone: kind[1],
      about: read.about ?? (read.count === undefined ? "" : `${read.count} events`),
      detail: read.limit ? `by ${read.limit}${share}` : "",
    });
  });
  useEffect(() => {
    const before = known.current;
    known.current = agents;
    if (!before || !agents) return;
    // A name behind the end of one of the pages is not in both, whether it is connected or not.
    const isInBoth = (name: string): boolean => [before.next, agents.next].every((end) => end === undefined || name <= end);
    const counts = (page: Agents): Map<string, number> =>
      new Map(page.agents.filter(({ name }) => !name.startsWith("telpher/") && isInBoth(name)).map(({ name, instance_count }) => [name, instance_count]));
    const [old, now, at] = [counts(before), counts(agents), Date.now()];
    for (const name of new Set([...old.keys(), ...now.keys()])) {
      const [was, is] = [old.get(name) ?? 0, now.get(name) ?? 0];
      const detail = `${is} instances`;
      if (is > was) add({ at, kind: "connected", tone: "good", about: name, detail });
      if (is < was) add({ at, kind: "disconnected", tone: is === 0 ? "bad" : "warn", about: name, detail });
    }
  }, [agents]);
  return (
    <Section title="Last events" note={problem ? problem.message : "as they come"}>
      {events.length === 0 ? (
        <Empty title="Nothing has happened since this page was opened">
          <p>Denied takes, halts, changes of limits, and agents that connect or disconnect appear here.</p>
        </Empty>
      ) : (
        <ol class="events" aria-live="polite" tabIndex={0} aria-label="Last events">
          {events.map((event) => (
            <li key={event.key}>
              <time>{clock(event.at)}</time>
              <Badge tone={event.tone}>{event.kind}</Badge>
              {event.about.split("/").length === 3 && !event.about.includes("?") ? (
                <a class="name" href={href(["agents", ...partsOf(event.about)])}>{visible(event.about)}</a>
              ) : (
                <span class="name">{visible(event.about)}</span>
              )}
              <span class="note">{visible(event.detail)}</span>
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}
