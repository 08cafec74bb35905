// The node: its storage, its connections, its error codes, its metrics and, in a cluster, its members.

import { useMemo } from "preact/hooks";
import { callNode, getJson, getText } from "../api";
import { bytes, count, duration, visible } from "../format";
import { useRead, useTitle } from "../hooks";
import { Badge, Command, Empty, ForAdministrators, Input, Page, Section, Select, Shown, Stat, Stats, Table, Tabs, Time, isDenied } from "../parts";
import { href, partsOf, route, setQuery } from "../route";
import { useStore } from "../store";

interface Connection {
  id: number;
  name: string | null;
  principal: string | null;
  remote: string;
  door: string;
  opened_unix_ms: number;
  subscriptions: number;
  pending_calls: number;
  queued_bytes: number;
}

interface ErrorCode {
  code: string;
  number: number;
  cause: string;
  raised_by: string;
  executed: string;
  retry: string;
}

interface Who {
  name: string;
  token: string | null;
  role: string;
}

interface Series {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const TABS = ["storage", "config", "doctor", "connections", "errors", "metrics", "cluster"] as const;
const TITLES: Record<(typeof TABS)[number], string> = {
  storage: "Storage",
  config: "Configuration",
  doctor: "Doctor",
  connections: "Connections",
  errors: "Error codes",
  metrics: "Metrics",
  cluster: "Cluster",
};

export function NodePage() {
  useTitle("Node");
  const { path } = useStore(route);
  const tab = TABS.find((one) => one === path[1]) ?? "storage";
  const metrics = useRead("metrics", async (signal) => parseMetrics(await getText("/v1/metrics", { signal, isShared: true })), 5_000);
  const isClustered = metrics.value?.some((one) => one.name === "telpher_members") ?? false;
  const tabs = TABS.filter((one) => one !== "cluster" || isClustered);
  return (
    <Page title="Node" lead="What the node stores, how it is configured, who is connected, and what its errors mean.">
      <Tabs label="Node" current={tab} tabs={tabs.map((one) => [one, TITLES[one], href(["node", one])])} />
      {tab === "storage" && <Shown read={metrics}>{(value) => <Storage metrics={value} />}</Shown>}
      {tab === "config" && <Configuration />}
      {tab === "doctor" && <Doctor />}
      {tab === "connections" && <Connections />}
      {tab === "errors" && <Errors />}
      {tab === "metrics" && <Shown read={metrics}>{(value) => <Metrics metrics={value} />}</Shown>}
      {tab === "cluster" && <Cluster />}
    </Page>
  );
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

// Returns the series of a page in Prometheus' text format.
export function parseMetrics(text: string): Series[] {
  const found: Series[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const parts = SAMPLE.exec(line);
    if (!parts) continue;
    const labels: Record<string, string> = {};
    for (const [, name = "", value = ""] of (parts[2] ?? "").matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, (_, one: string) => (one === "n" ? "\n" : one));
    found.push({ name: parts[1] ?? "", labels, value: Number(parts[3]) });
  }
  return found;
}

function Storage({ metrics }: { metrics: readonly Series[] }) {
  const value = (name: string): number => metrics.find((one) => one.name === name || one.name === `${name}_total`)?.value ?? 0;
  const state = metrics.find((one) => one.name === "telpher_journal_state" && one.value === 1)?.labels["state"] ?? "none";
  const problem = metrics.find((one) => one.name === "telpher_journal_problem")?.labels["reason"];
  const written = value("telpher_journal_bytes");
  const rewritten = value("telpher_journal_filed_bytes") + value("telpher_journal_merged_bytes");
  const amplification = written > 0 ? (written + rewritten) / written : 0;
  const dead = value("telpher_journal_dead_bytes");
  const extents = value("telpher_journal_extent_bytes");
  const uptime = value("process_start_time_seconds");
  const who = useRead("who", (signal) => getJson<Who>("/v1/whoami", { signal }));
  const version = useRead("node version", (signal) => getJson<{ version: string; native_protocol: { min: number; max: number } }>("/version", { signal }));
  if (state === "none") {
    return (
      <div class="panel">
        <Empty title="This node has no storage" />
      </div>
    );
  }
  return (
    <>
      <Stats>
        <Stat label="Journal" value={state.replaceAll("_", " ")} tone={state === "serving" ? "good" : "bad"} {...(problem ? { hint: visible(problem) } : {})} />
        <Stat label="On disk" value={bytes(extents + value("telpher_journal_unfiled_bytes"))} hint={`${count(value("telpher_journal_extents"))} extents`} />
        <Stat label="Write amplification" value={amplification === 0 ? "–" : amplification.toFixed(2)} hint="bytes written per byte" />
        <Stat label="No longer readable" value={bytes(dead)} hint={extents > 0 ? `${((dead / extents) * 100).toFixed(0)} % of the extents` : "of no extent"} />
        <Stat label="Syncs" value={count(value("telpher_journal_syncs"))} hint={`mean ${duration(meanSync(metrics))}`} />
        <Stat label="Running" value={uptime > 0 ? <Time ms={uptime * 1_000} /> : "–"} hint={version.value ? `version ${version.value.version}` : ""} />
        <Stat label="Your role" value={who.value?.role ?? "–"} hint={who.value ? visible(who.value.token ?? who.value.name) : ""} />
      </Stats>
      <Section title="Journal" wide>
        <Table
          label="Journal"
          rows={[
            ["Records written", count(value("telpher_journal_records")), "since the start"],
            ["Bytes written", bytes(written), "to the write-ahead log, since the start"],
            ["Waiting for the disk", bytes(value("telpher_journal_queued_bytes")), "limit: journal.queue_size_max"],
            ["Free segments", count(value("telpher_journal_spare_segments")), "appends wait while there are none"],
            ["Segments to compact", count(value("telpher_journal_waiting_segments")), "sealed, not yet in an extent"],
            ["Not compacted", bytes(value("telpher_journal_unfiled_bytes")), "with the current segment"],
            ["Compacted", bytes(value("telpher_journal_filed_bytes")), `${count(value("telpher_journal_filed_segments"))} segments`],
            ["Merged", bytes(value("telpher_journal_merged_bytes")), `${count(value("telpher_journal_merges"))} merges`],
            ["Extents", bytes(extents), `${count(value("telpher_journal_extents"))} of them`],
          ]}
          rowKey={(row) => row[0] ?? ""}
          empty={null}
          columns={[
            { title: "Quantity", class: "nowrap", cell: (row) => row[0] },
            { title: "Value", class: "number", cell: (row) => row[1] },
            { title: "Note", class: "grow", cell: (row) => <span class="note">{row[2]}</span> },
          ]}
        />
      </Section>
      <Section title="Back up">
        <p class="note">It works on this machine, or over the network with <code>--url</code>. <a href={href(["node", "doctor"])}>Doctor</a> shows the last one.</p>
        <p><Command text="telpher backup ./backup" /></p>
      </Section>
    </>
  );
}

function meanSync(metrics: readonly Series[]): number | null {
  const sum = metrics.find((one) => one.name === "telpher_journal_sync_seconds_sum")?.value;
  const many = metrics.find((one) => one.name === "telpher_journal_sync_seconds_count")?.value;
  return sum === undefined || !many ? null : (sum / many) * 1_000;
}

interface Option {
  key: string;
  value: string;
  default: string;
  layer: string;
  origin: string;
  variable: string;
  flag: string;
  description: string;
}

const LAYERS = [
  ["", "All"],
  ["changed", "Not the default"],
  ["file", "File"],
  ["environment", "Environment"],
  ["option", "Option"],
  ["node", "Adjusted by the node"],
] as const;

function Configuration() {
  const { query } = useStore(route);
  const filter = query["filter"] ?? "";
  const layer = query["layer"] ?? "";
  const read = useRead("config", (signal) => getJson<{ options: Option[] }>("/v1/config", { signal }));
  if (isDenied(read.error)) return <ForAdministrators title="The configuration is for administrators" />;
  const matches = (row: Option): boolean => {
    const isLayer = layer === "" || row.layer === layer || (layer === "changed" && row.layer !== "default");
    return isLayer && `${row.key} ${row.value} ${row.description}`.toLowerCase().includes(filter.toLowerCase());
  };
  return (
    <Section title="Configuration" note="of the running node; passwords are not shown" wide>
      <div class="bar-of-fields">
        <Input label="Contains" type="search" value={filter} placeholder="journal" onChange={(value) => setQuery({ filter: value })} />
        <Select label="Origin" value={layer} options={LAYERS} onChange={(value) => setQuery({ layer: value })} />
        <Command text="telpher config show --origin" />
      </div>
      <Shown read={read}>
        {({ options }) => (
          <Table
            label="Configuration"
            rows={options.filter(matches)}
            rowKey={(row) => row.key}
            empty={<Empty title="No option matches" />}
            columns={[
              {
                title: "Option",
                text: (row) => row.key,
                class: "grow wrap",
                cell: (row) => (
                  <details>
                    <summary><span class="name">{row.key}</span></summary>
                    <p class="note">{row.description}</p>
                    <p class="note"><code>{row.flag}</code> <code>{row.variable}</code></p>
                  </details>
                ),
              },
              { title: "Value", text: (row) => row.value, class: "wrap", cell: (row) => <span class="name">{visible(row.value)}</span> },
              { title: "Default", text: (row) => row.default, class: "wrap", cell: (row) => (row.default === row.value ? <span class="note">the same</span> : <span class="name">{visible(row.default)}</span>) },
              {
                title: "Origin",
                text: (row) => row.layer,
                class: "wrap",
                cell: (row) => (row.layer === "default" ? <span class="note">default</span> : <><Badge tone="info">{row.layer}</Badge> <span class="note">{visible(row.origin)}</span></>),
              },
            ]}
          />
        )}
      </Shown>
    </Section>
  );
}

interface Finding {
  check: string;
  verdict: string;
  detail: string;
  hints: string[];
}

function Doctor() {
  const read = useRead("doctor", (signal) => getJson<{ ok: boolean; checks: Finding[] }>("/v1/doctor", { signal }));
  if (isDenied(read.error)) return <ForAdministrators title="The checks are for administrators" />;
  const tone = (verdict: string): "good" | "warn" | "bad" => (verdict === "ok" ? "good" : verdict === "warn" ? "warn" : "bad");
  return (
    <Section title="Doctor" note="checks that the running node makes of its environment" wide>
      <div class="bar-of-fields">
        <button type="button" class="small" onClick={read.reload}>Check again</button>
        <Command text="telpher doctor" />
      </div>
      <Shown read={read}>
        {({ checks }) => (
          <Table
            label="Checks"
            rows={checks}
            rowKey={(row) => row.check}
            empty={null}
            columns={[
              { title: "Result", text: (row) => row.verdict, cell: (row) => <Badge tone={tone(row.verdict)}>{row.verdict}</Badge> },
              { title: "Check", text: (row) => row.check, class: "nowrap", cell: (row) => row.check },
              {
                title: "Finding",
                class: "grow wrap",
                cell: (row) => (
                  <>
                    {visible(row.detail)}
                    {row.hints.map((hint) => <p key={hint} class="note">{visible(hint)}</p>)}
                  </>
                ),
              },
            ]}
          />
        )}
      </Shown>
    </Section>
  );
}

const CONNECTIONS = 1_000;

function Connections() {
  const { query } = useStore(route);
  const filter = query["filter"] ?? "";
  const after = query["after"] ?? "0";
  const read = useRead(`connections ${after}`, (signal) => getJson<{ connections: Connection[]; next?: number; total: number }>(`/v1/connections?limit=${CONNECTIONS}&after=${encodeURIComponent(after)}`, { signal, isShared: true }), 5_000);
  return (
    <Section title="Connections" note={`native, Kafka and SLIM clients${read.value ? `: ${count(read.value.total)}` : ""}`} wide>
      <div class="bar-of-fields">
        <Input label="Contains" type="search" value={filter} onChange={(value) => setQuery({ filter: value })} />
      </div>
      <Shown read={read}>
        {({ connections, next }) => (
          <>
          <Table
            label="Connections"
            rows={connections.filter((one) => `${one.name ?? ""} ${one.remote} ${one.principal ?? ""} ${one.door}`.includes(filter))}
            rowKey={(row) => String(row.id)}
            empty={<Empty title="No client is connected" />}
            columns={[
              { title: "No.", number: (row) => row.id, cell: (row) => row.id },
              { title: "Name", text: (row) => row.name ?? "", class: "grow", cell: (row) => (row.name ? row.name.split("/").length === 3 ? <a class="name" href={href(["agents", ...partsOf(row.name)])}>{visible(row.name)}</a> : <span class="name">{visible(row.name)}</span> : "–") },
              { title: "Protocol", text: (row) => row.door, cell: (row) => row.door },
              { title: "Address", text: (row) => row.remote, cell: (row) => <span class="name">{visible(row.remote)}</span> },
              { title: "Principal", text: (row) => row.principal ?? "", cell: (row) => <span class="name">{visible(row.principal ?? "–")}</span> },
              { title: "Open for", number: (row) => -row.opened_unix_ms, cell: (row) => <Time ms={row.opened_unix_ms} /> },
              { title: "Subscriptions", number: (row) => row.subscriptions, cell: (row) => count(row.subscriptions) },
              { title: "Calls in flight", number: (row) => row.pending_calls, cell: (row) => count(row.pending_calls) },
              { title: "Queued", number: (row) => row.queued_bytes, cell: (row) => bytes(row.queued_bytes) },
            ]}
          />
          {(next !== undefined || after !== "0") && (
            <p class="more row">
              {after !== "0" && <a href={href(["node", "connections"], { filter })}>First page</a>}
              {next !== undefined && <a href={href(["node", "connections"], { filter, after: next })}>Next page</a>}
            </p>
          )}
          </>
        )}
      </Shown>
    </Section>
  );
}

function Errors() {
  const { query } = useStore(route);
  const chosen = query["code"] ?? "";
  const read = useRead("errors", (signal) => getJson<{ errors: ErrorCode[] }>("/v1/errors", { signal }));
  return (
    <Section title="Error codes" note="telpher explain CODE prints the same" wide>
      <div class="bar-of-fields">
        <Input label="Code" type="search" value={chosen} onChange={(value) => setQuery({ code: value })} />
      </div>
      <Shown read={read}>
        {({ errors }) => (
          <Table
            label="Error codes"
            rows={errors.filter((one) => one.code.includes(chosen))}
            rowKey={(row) => row.code}
            empty={<Empty title="There is no such code" />}
            columns={[
              { title: "Code", text: (row) => row.code, cell: (row) => <a class="code" href={href(["node", "errors"], { code: row.code })}>{row.code}</a> },
              { title: "Cause", class: "grow wrap", cell: (row) => row.cause },
              { title: "Executed", text: (row) => row.executed, cell: (row) => row.executed },
              { title: "Retry", text: (row) => row.retry, cell: (row) => row.retry },
            ]}
          />
        )}
      </Shown>
    </Section>
  );
}

function Metrics({ metrics }: { metrics: readonly Series[] }) {
  const { query } = useStore(route);
  const filter = query["filter"] ?? "";
  const rows = useMemo(
    () => metrics.filter((one) => !one.name.endsWith("_bucket") && (one.name.includes(filter) || Object.values(one.labels).some((label) => label.includes(filter)))),
    [metrics, filter],
  );
  return (
    <Section title="Metrics" note="as Prometheus reads them from /metrics, without the buckets of histograms" wide>
      <div class="bar-of-fields">
        <Input label="Contains" type="search" value={filter} placeholder="journal" onChange={(value) => setQuery({ filter: value })} />
      </div>
      <Table
        label="Metrics"
        rows={rows}
        rowKey={(row) => `${row.name} ${JSON.stringify(row.labels)}`}
        empty={<Empty title="No metric contains this text" />}
        columns={[
          { title: "Metric", text: (row) => row.name, class: "grow", cell: (row) => <code>{row.name}</code> },
          { title: "Labels", cell: (row) => <span class="chips">{Object.entries(row.labels).map(([name, value]) => <span key={name} class="chip"><span class="note">{name}</span> {visible(value)}</span>)}</span> },
          { title: "Value", number: (row) => row.value, cell: (row) => (Number.isInteger(row.value) ? count(row.value) : row.value.toPrecision(4)) },
        ]}
      />
    </Section>
  );
}

interface Member {
  id: number;
  name: string;
  role: string;
  shards_led: number;
  in_sync: boolean;
  behind_blocks: number | null;
  clock_ahead_ms: number | null;
  kept_out: string | null;
  link: string | null;
  http: string | null;
}

interface Shard {
  shard: number;
  leader: number | null;
  term: number;
  voters: number[];
  in_sync: number[];
  last_block: number;
  committed_block: number;
}

interface Status {
  cluster: string;
  leader: number | null;
  nodes: Member[];
  shards: Shard[];
}

function Cluster() {
  const status = useRead("cluster", (signal) => callNode<Status>("cluster", {}, signal), 2_000);
  return (
    <Shown read={status}>
      {({ cluster, leader, nodes, shards }) => (
        <>
          <Stats>
            <Stat label="Members" value={count(nodes.length)} hint={`cluster ${cluster}`} />
            <Stat label="In sync" value={count(nodes.filter((one) => one.in_sync).length)} tone={nodes.every((one) => one.in_sync) ? "good" : "warn"} />
            <Stat label="Leader" value={leader === null ? "none" : `${visible(nodes.find((one) => one.id === leader)?.name ?? "")} (no. ${leader})`} tone={leader === null ? "bad" : undefined} />
            <Stat label="Shards" value={count(shards.length)} />
          </Stats>
          <Section title="Members" wide>
            <Table
              label="Members"
              rows={nodes}
              rowKey={(row) => String(row.id)}
              empty={null}
              columns={[
                { title: "Member", text: (row) => row.name, class: "grow", cell: (row) => <span class="name">{visible(row.name)}</span> },
                { title: "No.", number: (row) => row.id, cell: (row) => row.id },
                { title: "Role", text: (row) => row.role, cell: (row) => row.role },
                {
                  title: "State",
                  cell: (row) => (row.kept_out ? <Badge tone="bad">kept out: {visible(row.kept_out)}</Badge> : row.in_sync ? <Badge tone="good">in sync</Badge> : <Badge tone="warn">not in sync</Badge>),
                },
                { title: "Leads", number: (row) => row.shards_led, cell: (row) => `${row.shards_led} shards` },
                { title: "Blocks behind", number: (row) => row.behind_blocks ?? -1, cell: (row) => (row.behind_blocks === null ? "unknown" : count(row.behind_blocks)) },
                { title: "Clock ahead", number: (row) => row.clock_ahead_ms ?? 0, cell: (row) => (row.clock_ahead_ms === null ? "–" : `${row.clock_ahead_ms} ms`) },
                { title: "HTTP", cell: (row) => <span class="name">{visible(row.http ?? "–")}</span> },
              ]}
            />
          </Section>
          <Section title="Shards" wide>
            <Table
              label="Shards"
              rows={shards}
              rowKey={(row) => String(row.shard)}
              empty={null}
              columns={[
                { title: "Shard", number: (row) => row.shard, cell: (row) => row.shard },
                { title: "Leader", number: (row) => row.leader ?? -1, cell: (row) => row.leader ?? <Badge tone="bad">none</Badge> },
                { title: "Term", number: (row) => row.term, cell: (row) => count(row.term) },
                { title: "Voters", class: "grow", cell: (row) => row.voters.join(", ") },
                { title: "In sync", class: "nowrap", cell: (row) => row.in_sync.join(", ") },
                { title: "Committed", number: (row) => row.committed_block, cell: (row) => count(row.committed_block) },
                { title: "Last block", number: (row) => row.last_block, cell: (row) => count(row.last_block) },
              ]}
            />
          </Section>
        </>
      )}
    </Shown>
  );
}
