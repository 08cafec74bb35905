// Topics: partitions, records with their decoded content, lists of consumer groups and their lag.

import { useMemo, useRef, useState } from "preact/hooks";
import { getJson } from "../api";
import { bytes, count, dateTime, quoted, visible } from "../format";
import { useEvents, useRead, useTitle } from "../hooks";
import { Badge, Body, Check, Command, Crumbs, Empty, Failure, Input, Page, Section, Select, Shown, Stat, Stats, Table, Tabs, Time } from "../parts";
import { href, route, setQuery } from "../route";
import { useStore } from "../store";
import { OneGroup } from "./group";

interface Topic {
  name: string;
  id: string;
  partitions: number;
  created_at: string;
  configs: Record<string, string>;
}

interface Partition {
  partition: number;
  start: number;
  end: number;
  committed_end: number;
  size: number;
}

interface TopicDetail extends Topic {
  effective: Record<string, string>;
  records: number;
  size: number;
  // A page of the partitions.
  state: Partition[];
}

interface Group {
  group: string;
  state: string;
  protocol_type: string;
  members: number;
  lag: number;
  topics: Record<string, number>;
}

interface Record_ {
  offset: number;
  timestamp_ms: number;
  key?: unknown;
  value: unknown;
  headers?: [string, unknown][];
  // Size of the record in bytes, in place of a content that is too large for a page.
  omitted_bytes?: number;
}

interface Row extends Record_ {
  partition: number;
}

export function TopicsPage() {
  const { path } = useStore(route);
  if (path[1] === "groups" && path[2]) return <OneGroup key={path[2]} group={path[2]} />;
  if (path[1] === "topic" && path[2]) return <OneTopic key={path[2]} name={path[2]} />;
  return <AllTopics />;
}

const GROUPS = 500;

// Reads groups: all behind `after`, or those of a topic.
function readGroups(signal: AbortSignal, after = "", topic = ""): Promise<{ groups: Group[]; next?: string }> {
  const query = new URLSearchParams({ limit: String(GROUPS), ...(after === "" ? {} : { after }), ...(topic === "" ? {} : { topic }) });
  return getJson(`/v1/groups?${query}`, { signal, isShared: true });
}

function AllTopics() {
  useTitle("Topics");
  const { path, query } = useStore(route);
  const prefix = query["prefix"] ?? "";
  const after = query["after"] ?? "";
  const isGroups = path[1] === "groups";
  const topics = useRead(`topics ${prefix} ${after}`, (signal) => getJson<{ topics: Topic[]; next?: string | null }>(`/v1/topics?limit=1000&prefix=${encodeURIComponent(prefix)}${after && !isGroups ? `&after=${encodeURIComponent(after)}` : ""}`, { signal, isShared: true }), 5_000, true);
  const groupsAfter = isGroups ? after : "";
  const groups = useRead(`groups ${groupsAfter}`, (signal) => readGroups(signal, groupsAfter), 5_000);
  const readers = useMemo(() => {
    const found = new Map<string, [string, number][]>();
    for (const group of groups.value?.groups ?? []) {
      for (const [topic, lag] of Object.entries(group.topics)) found.set(topic, [...(found.get(topic) ?? []), [group.group, lag]]);
    }
    return found;
  }, [groups.value]);
  const lagOf = (topic: string): number => (readers.get(topic) ?? []).reduce((most, [, lag]) => Math.max(most, lag), 0);
  return (
    <Page title="Topics" lead="Kafka topics of the node, and the groups that consume them.">
      <Tabs label="Topics" current={isGroups ? "groups" : "topics"} tabs={[["topics", "Topics", href(["topics"])], ["groups", "Consumer groups", href(["topics", "groups"])]]} />
      {isGroups ? (
        <Section title="Consumer groups" wide>
          <Shown read={groups}>
            {({ groups: rows, next }) => (
              <>
                <Groups rows={rows} />
                {next && <p class="more"><a href={href(["topics", "groups"], { after: next })}>Next page</a></p>}
              </>
            )}
          </Shown>
        </Section>
      ) : (
        <Section title="Topics" wide>
          <div class="bar-of-fields">
            <Input label="Names that begin with" type="search" value={prefix} onChange={(value) => setQuery({ prefix: value, after: "" })} />
          </div>
          <Shown read={topics}>
            {({ topics: rows, next }) => (
              <>
                <Table
                  label="Topics"
                  rows={rows}
                  rowKey={(row) => row.name}
                  empty={
                    <Empty title={prefix ? "No topic has this name" : "There is no topic"}>
                      {!prefix && (<><p>Create one, and produce a record:</p><Command text="telpher topic produce orders 'two books' --key customer-7" /></>)}
                    </Empty>
                  }
                  columns={[
                    { title: "Topic", text: (row) => row.name, class: "grow", cell: (row) => <a class="name" href={href(["topics", "topic", row.name])}>{visible(row.name)}</a> },
                    { title: "Partitions", number: (row) => row.partitions, cell: (row) => count(row.partitions) },
                    {
                      title: "Groups",
                      cell: (row) => (
                        <span class="chips">
                          {(readers.get(row.name) ?? []).slice(0, 4).map(([group, lag]) => (
                            <a key={group} class="chip" href={href(["topics", "groups", group])}>{visible(group)} <span class={lag > 0 ? "warn-text" : "note"}>{count(lag)}</span></a>
                          ))}
                          {(readers.get(row.name)?.length ?? 0) > 4 && <span class="note">and {(readers.get(row.name)?.length ?? 0) - 4} more</span>}
                        </span>
                      ),
                    },
                    { title: "Largest lag", number: (row) => lagOf(row.name), cell: (row) => (readers.has(row.name) ? count(lagOf(row.name)) : "–") },
                    { title: "Settings", cell: (row) => <span class="chips">{Object.entries(row.configs).slice(0, 3).map(([key, value]) => <span key={key} class="chip"><span class="note">{key}</span> {visible(value)}</span>)}</span> },
                    { title: "Created", number: (row) => Date.parse(row.created_at), cell: (row) => <Time ms={Date.parse(row.created_at)} /> },
                  ]}
                />
                {next && <p class="more"><a href={href(["topics"], { prefix, after: next })}>Next page</a></p>}
              </>
            )}
          </Shown>
        </Section>
      )}
    </Page>
  );
}

function stateTone(state: string): "good" | "warn" | "info" {
  if (state === "Stable") return "good";
  return state === "Empty" ? "info" : "warn";
}

function Groups({ rows }: { rows: readonly Group[] }) {
  return (
    <Table
      label="Consumer groups"
      rows={rows}
      rowKey={(row) => row.group}
      empty={<Empty title="There is no consumer group" />}
      columns={[
        { title: "Group", text: (row) => row.group, class: "grow", cell: (row) => <a class="name" href={href(["topics", "groups", row.group])}>{visible(row.group)}</a> },
        { title: "State", text: (row) => row.state, cell: (row) => <Badge tone={stateTone(row.state)}>{row.state}</Badge> },
        { title: "Members", number: (row) => row.members, cell: (row) => count(row.members) },
        { title: "Topics", number: (row) => Object.keys(row.topics).length, cell: (row) => count(Object.keys(row.topics).length) },
        { title: "Lag", number: (row) => row.lag, cell: (row) => (row.lag > 0 ? <span class="warn-text">{count(row.lag)}</span> : "0") },
      ]}
    />
  );
}

function OneTopic({ name }: { name: string }) {
  useTitle(name);
  const { query } = useStore(route);
  const tab = query["tab"] ?? "records";
  const path = ["topics", "topic", name];
  // The page of partitions that was chosen, or that of the chosen partition.
  const first = Number(query["first"] ?? 0) || PARTITIONS * Math.floor((Number(query["partition"] ?? 0) || 0) / PARTITIONS);
  const detail = useRead(`topic ${name} ${first}`, (signal) => getJson<TopicDetail>(`/v1/topics/${encodeURIComponent(name)}?from=${first}&limit=${PARTITIONS}`, { signal, isShared: true }), 3_000, true);
  const groups = useRead(`groups of ${name}`, (signal) => readGroups(signal, "", name), 5_000);
  const readers = groups.value?.groups ?? [];
  return (
    <Page title={visible(name)} lead="Topic">
      <Crumbs items={[["Topics", ["topics"]], [name, null]]} />
      <Shown read={detail}>
        {(topic) => (
          <>
            <Stats>
              <Stat label="Partitions" value={count(topic.partitions)} />
              <Stat label="Records" value={count(topic.records)} hint="offsets between start and end" />
              <Stat label="Size" value={bytes(topic.size)} />
              <Stat label="Groups" value={count(readers.length)} />
              <Stat label="Largest lag" value={count(readers.reduce((most, group) => Math.max(most, group.topics[name] ?? 0), 0))} />
            </Stats>
            <Tabs
              label="Topic"
              current={tab}
              tabs={[
                ["records", "Records", href(path)],
                ["partitions", "Partitions", href(path, { tab: "partitions" })],
                ["groups", `Groups (${readers.length})`, href(path, { tab: "groups" })],
                ["settings", "Settings", href(path, { tab: "settings" })],
              ]}
            />
            {tab === "records" && <Records topic={topic} />}
            {tab === "partitions" && <Partitions topic={topic} first={first} />}
            {tab === "groups" && <Section title="Groups" wide><Groups rows={readers} /></Section>}
            {tab === "settings" && <Settings topic={topic} />}
          </>
        )}
      </Shown>
    </Page>
  );
}

function Partitions({ topic, first }: { topic: TopicDetail; first: number }) {
  const pageAt = (start: number): string => href(["topics", "topic", topic.name], { tab: "partitions", first: start });
  return (
    <Section title="Partitions" wide>
      <Table
        label="Partitions"
        rows={topic.state}
        rowKey={(row) => String(row.partition)}
        empty={null}
        columns={[
          { title: "Partition", number: (row) => row.partition, cell: (row) => <a href={href(["topics", "topic", topic.name], { partition: row.partition })}>{row.partition}</a> },
          { title: "Start", number: (row) => row.start, cell: (row) => count(row.start) },
          { title: "End", number: (row) => row.end, cell: (row) => count(row.end) },
          { title: "Committed end", number: (row) => row.committed_end, cell: (row) => count(row.committed_end) },
          { title: "Records", number: (row) => row.end - row.start, cell: (row) => count(row.end - row.start) },
          { title: "Size", number: (row) => row.size, cell: (row) => bytes(row.size) },
        ]}
      />
      {topic.partitions > topic.state.length && (
        <p class="more row">
          {first > 0 && <a href={pageAt(Math.max(0, first - PARTITIONS))}>Earlier</a>}
          {first + PARTITIONS < topic.partitions && <a href={pageAt(first + PARTITIONS)}>Later</a>}
          <span class="note">{count(first)} to {count(first + topic.state.length - 1)} of {count(topic.partitions)}</span>
        </p>
      )}
    </Section>
  );
}

function Settings({ topic }: { topic: TopicDetail }) {
  const rows = Object.entries(topic.effective).map(([key, value]) => ({ key, value, isSet: key in topic.configs }));
  return (
    <Section title="Settings" note="those that differ from the defaults are marked" wide>
      <Table
        label="Settings"
        rows={rows}
        rowKey={(row) => row.key}
        empty={null}
        columns={[
          { title: "Setting", text: (row) => row.key, class: "grow", cell: (row) => <span class="name">{row.key}</span> },
          { title: "Value", text: (row) => row.value, cell: (row) => <span class="name">{visible(row.value)}</span> },
          { title: "Origin", text: (row) => (row.isSet ? "topic" : "default"), cell: (row) => (row.isSet ? <Badge tone="info">topic</Badge> : <span class="note">default</span>) },
        ]}
      />
    </Section>
  );
}

const PAGE = 50;
const LIVE_ROWS = 200;
// Partitions whose newest records are read for a page without a chosen one.
const PARTITIONS_READ = 16;
// Bytes of a page of records, over all of its partitions.
const PAGE_BYTES = 512 * 1_024;
// Partitions of a topic or a group in one answer.
const PARTITIONS = 1_000;

interface Records_ {
  records: Record_[];
  next: number;
}

async function readPage(topic: string, partition: number, from: number, limit: number, size: number, signal: AbortSignal): Promise<Records_> {
  return getJson(`/v1/topics/${encodeURIComponent(topic)}/partitions/${partition}/records?from=${from}&limit=${limit}&max_bytes=${size}`, { signal });
}

// Returns the first offset whose record is not older than `ms`, by halving the range.
async function offsetAt(topic: string, partition: Partition, ms: number, signal: AbortSignal): Promise<number> {
  let low = partition.start;
  let high = partition.committed_end;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { records } = await readPage(topic, partition.partition, middle, 1, 1_024, signal);
    const found = records[0];
    if (!found || found.offset >= high) high = middle;
    else if (found.timestamp_ms >= ms) high = middle;
    else low = found.offset + 1;
  }
  return low;
}

// Records of one partition from an offset or a time, or the newest ones of all partitions.
function Records({ topic }: { topic: TopicDetail }) {
  const { query } = useStore(route);
  const chosen = topic.state.find((one) => String(one.partition) === query["partition"]) ?? (topic.state.length === 1 ? topic.state[0] : undefined);
  const from = query["from"] ?? "";
  const time = query["time"] ?? "";
  const isLive = query["live"] === "1";
  const filter = query["filter"] ?? "";
  const ends = topic.state.map((one) => one.committed_end).join();
  // A page that starts at an offset does not change with the end of the partition.
  const isFixed = chosen !== undefined && (from !== "" || time !== "");
  const page = useRead(`records ${topic.name} ${chosen?.partition ?? "all"} ${from} ${time} ${isFixed ? "" : ends}`, async (signal) => {
    if (chosen) {
      let start = Math.max(chosen.start, chosen.committed_end - PAGE);
      if (from !== "") start = Math.max(chosen.start, Math.min(Number(from) || 0, chosen.committed_end));
      else if (time !== "") start = await offsetAt(topic.name, chosen, Date.parse(time), signal);
      const read = await readPage(topic.name, chosen.partition, start, PAGE, PAGE_BYTES, signal);
      return { start, next: read.next, rows: read.records.map((record): Row => ({ ...record, partition: chosen.partition })) };
    }
    const each = Math.max(5, Math.ceil((2 * PAGE) / Math.max(1, topic.state.length)));
    const filled = topic.state.filter((one) => one.committed_end > one.start).slice(0, PARTITIONS_READ);
    const pages = await Promise.all(
      filled.map(async (one) => {
        const read = await readPage(topic.name, one.partition, Math.max(one.start, one.committed_end - each), each, Math.floor(PAGE_BYTES / filled.length), signal);
        return read.records.map((record): Row => ({ ...record, partition: one.partition }));
      }),
    );
    const rows = pages.flat().sort((one, other) => other.timestamp_ms - one.timestamp_ms);
    return { start: 0, next: 0, rows: rows.slice(0, 2 * PAGE) };
  }, 0, true);
  const live = useRef<Row[]>([]);
  const [, render] = useState(0);
  const livePath = isLive && chosen ? `/v1/topics/${encodeURIComponent(topic.name)}/partitions/${chosen.partition}/follow?from=latest` : null;
  const problem = useEvents(livePath, ({ event, data }) => {
    if (event !== "record" || !chosen) return;
    live.current = [{ ...(JSON.parse(data) as Record_), partition: chosen.partition }, ...live.current].slice(0, LIVE_ROWS);
    render((old) => old + 1);
  });
  const command = `telpher topic consume ${quoted(topic.name)}${chosen && from ? ` --from ${from}` : ""}${isLive ? " --follow" : ""}`;
  const matches = (row: Row): boolean => filter === "" || shown(row.value).includes(filter) || shown(row.key ?? "").includes(filter);
  return (
    <Section title="Records" note={!chosen && topic.partitions > PARTITIONS_READ ? `the newest of ${PARTITIONS_READ} partitions` : !chosen ? "the newest of all partitions" : undefined} wide>
      <div class="bar-of-fields">
        <Select
          label="Partition"
          value={chosen ? String(chosen.partition) : ""}
          options={[["", "All, newest"] as const, ...topic.state.map((one) => [String(one.partition), String(one.partition)] as const)]}
          onChange={(value) => {
            live.current = [];
            setQuery({ partition: value, from: "", time: "", live: "" });
          }}
        />
        {chosen && <Input label="From offset" value={from} placeholder={String(Math.max(chosen.start, chosen.committed_end - PAGE))} onChange={(value) => setQuery({ from: value.replace(/\D/g, ""), time: "" })} />}
        {chosen && <Input label="From time" type="datetime-local" value={time} onChange={(value) => setQuery({ time: value, from: "" })} />}
        <Input label="Contains" type="search" value={filter} onChange={(value) => setQuery({ filter: value })} />
        {chosen && (
          <Check
            label="Live"
            value={isLive}
            onChange={(value) => {
              live.current = [];
              setQuery({ live: value ? 1 : "" });
            }}
          />
        )}
        <Command text={command} />
      </div>
      {problem && <Failure error={problem} />}
      {isLive && chosen && (
        <>
          <p class="note" role="status">New records of partition {chosen.partition} appear here, the newest first.</p>
          <RecordTable topic={topic.name} rows={live.current.filter(matches)} empty="No record has arrived yet" />
        </>
      )}
      {!(isLive && chosen) && (
        <Shown read={page}>
          {({ rows, start, next }) => (
            <>
              <RecordTable topic={topic.name} rows={rows.filter(matches)} empty={filter ? "No record of this page contains the text" : "There are no records"} />
              {chosen && (
                <p class="more row">
                  {start > chosen.start && <a href={href(["topics", "topic", topic.name], { partition: chosen.partition, from: Math.max(chosen.start, start - PAGE), filter })}>Earlier</a>}
                  {next < chosen.committed_end && <a href={href(["topics", "topic", topic.name], { partition: chosen.partition, from: next, filter })}>Later</a>}
                  <span class="note">offsets {count(chosen.start)} to {count(chosen.committed_end)}</span>
                </p>
              )}
            </>
          )}
        </Shown>
      )}
    </Section>
  );
}

// Returns a key, a value or a header as text.
function shown(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return "text";
  if (typeof value === "object" && "base64" in value && Object.keys(value).length === 1) return "bytes";
  return "JSON";
}

// A record that is too large for a page: its size, and its content on request.
function LargeRecord({ topic, row }: { topic: string; row: Row }) {
  const [record, setRecord] = useState<Record_>();
  const [error, setError] = useState<Error>();
  const load = async (): Promise<void> => {
    try {
      const path = `/v1/topics/${encodeURIComponent(topic)}/partitions/${row.partition}/records?from=${row.offset}&limit=1`;
      setRecord((await getJson<Records_>(path)).records[0]);
    } catch (failed) {
      setError(failed instanceof Error ? failed : new Error(String(failed)));
    }
  };
  if (record) return <Content record={record} isOpen />;
  return (
    <>
      <button type="button" class="quiet small" onClick={() => void load()}>Load {bytes(row.omitted_bytes ?? 0)}</button>
      {error && <Failure error={error} />}
    </>
  );
}

function Content({ record, isOpen = false }: { record: Record_; isOpen?: boolean }) {
  return (
    <details class="inline" open={isOpen}>
      <summary>
        <Badge>{kindOf(record.value)}</Badge> <span class="name clip">{visible(shown(record.value).slice(0, 200))}</span>
      </summary>
      {record.headers && record.headers.length > 0 && (
        <dl class="pairs">
          {record.headers.map(([key, value], index) => (
            <div key={index}>
              <dt>{visible(key)}</dt>
              <dd>{visible(shown(value))}</dd>
            </div>
          ))}
        </dl>
      )}
      {record.key !== undefined && (<><p class="label">Key</p><Body text={shown(record.key)} /></>)}
      <p class="label">Value</p>
      <Body text={shown(record.value)} />
    </details>
  );
}

function RecordTable({ topic, rows, empty }: { topic: string; rows: readonly Row[]; empty: string }) {
  return (
    <Table
      label="Records"
      rows={rows}
      rowKey={(row) => `${row.partition} ${row.offset}`}
      empty={<Empty title={empty} />}
      columns={[
        { title: "Partition", number: (row) => row.partition, cell: (row) => row.partition },
        { title: "Offset", number: (row) => row.offset, cell: (row) => row.offset },
        { title: "Time", number: (row) => row.timestamp_ms, cell: (row) => <span class="nowrap">{dateTime(row.timestamp_ms)}</span> },
        { title: "Key", text: (row) => shown(row.key), cell: (row) => (row.key === undefined ? <span class="note">–</span> : <span class="name clip-short">{visible(shown(row.key))}</span>) },
        {
          title: "Value",
          class: "grow",
          cell: (row) => (row.omitted_bytes === undefined ? <Content record={row} /> : <LargeRecord topic={topic} row={row} />),
        },
        { title: "Headers", number: (row) => row.headers?.length ?? 0, cell: (row) => row.headers?.length ?? 0 },
      ]}
    />
  );
}
