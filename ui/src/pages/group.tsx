// A consumer group: its offsets, its members, and the reset of its offsets with a preview.

import { getJson } from "../api";
import { count, quoted, visible } from "../format";
import { useRead, useTitle } from "../hooks";
import { Action, Badge, Command, Crumbs, Empty, ForAdministrators, Input, Page, Section, Select, Shown, Stat, Stats, Table, Tabs, isDenied } from "../parts";
import { href, route, setQuery } from "../route";
import { useStore } from "../store";

interface GroupDetail {
  group: string;
  state: string;
  protocol_type: string;
  protocol: string;
  lag: number;
  partition_count: number;
  members: { member: string; instance?: string | null; client_id: string; client_host: string }[];
  partitions: { topic: string; partition: number; committed: number; end: number; lag: number }[];
}

interface Change {
  topic: string;
  partition: number;
  committed: number | null;
  offset: number;
  start: number;
  end: number;
  lag_before: number | null;
  lag_after: number;
  clamped: boolean;
}

interface Changes {
  group: string;
  dry_run: boolean;
  partitions: Change[];
}

// A reset as the node takes it, and the options of the command that does the same.
interface Reset {
  body: Record<string, unknown>;
  options: string;
}

export function OneGroup({ group }: { group: string }) {
  useTitle(`Group ${group}`);
  const { query } = useStore(route);
  const path = ["topics", "groups", group];
  const tab = query["tab"] === "reset" ? "reset" : "offsets";
  const detail = useRead(`group ${group}`, (signal) => getJson<GroupDetail>(`${pathOf(group)}?limit=${PARTITIONS}`, { signal, isShared: true }), 3_000);
  return (
    <Page title={visible(group)} lead="Consumer group">
      <Crumbs items={[["Topics", ["topics"]], ["Consumer groups", ["topics", "groups"]], [group, null]]} />
      <Shown read={detail}>
        {(value) => (
          <>
            <Stats>
              <Stat label="State" value={value.state} tone={value.state === "Stable" ? "good" : "warn"} />
              <Stat label="Members" value={count(value.members.length)} />
              <Stat label="Lag" value={count(value.lag)} hint="records" />
              <Stat label="Protocol" value={visible(value.protocol || value.protocol_type || "–")} />
            </Stats>
            <Tabs
              label="Consumer group"
              current={tab}
              tabs={[
                ["offsets", "Offsets and members", href(path)],
                ["reset", "Reset offsets", href(path, { tab: "reset" })],
              ]}
            />
            {tab === "offsets" ? <Offsets detail={value} /> : <ResetOffsets detail={value} reload={detail.reload} />}
          </>
        )}
      </Shown>
    </Page>
  );
}

// Partitions in the list at most.
const PARTITIONS = 1_000;

function pathOf(group: string): string {
  return `/v1/groups/${encodeURIComponent(group)}`;
}

function Offsets({ detail }: { detail: GroupDetail }) {
  return (
    <>
      <Section title="Offsets" note={detail.partition_count > detail.partitions.length ? `the ${count(detail.partitions.length)} partitions with the largest lag of ${count(detail.partition_count)}` : undefined} wide>
        <Table
          label="Offsets"
          rows={detail.partitions}
          rowKey={(row) => `${row.topic} ${row.partition}`}
          sort={4}
          descending
          empty={<Empty title="The group has committed no offset" />}
          columns={[
            { title: "Topic", text: (row) => row.topic, class: "grow", cell: (row) => <a class="name" href={href(["topics", "topic", row.topic])}>{visible(row.topic)}</a> },
            { title: "Partition", number: (row) => row.partition, cell: (row) => row.partition },
            { title: "Committed", number: (row) => row.committed, cell: (row) => <a href={href(["topics", "topic", row.topic], { partition: row.partition, from: row.committed })}>{count(row.committed)}</a> },
            { title: "End", number: (row) => row.end, cell: (row) => count(row.end) },
            { title: "Lag", number: (row) => row.lag, cell: (row) => (row.lag > 0 ? <span class="warn-text">{count(row.lag)}</span> : "0") },
          ]}
        />
      </Section>
      <Section title="Members" wide>
        <Table
          label="Members"
          rows={detail.members}
          rowKey={(row) => row.member}
          empty={<Empty title="The group has no members" />}
          columns={[
            { title: "Member", text: (row) => row.member, class: "grow", cell: (row) => <span class="name">{visible(row.member)}</span> },
            { title: "Instance", cell: (row) => visible(row.instance ?? "–") },
            { title: "Client", text: (row) => row.client_id, cell: (row) => visible(row.client_id) },
            { title: "Address", text: (row) => row.client_host, cell: (row) => <span class="name">{visible(row.client_host)}</span> },
          ]}
        />
      </Section>
    </>
  );
}

const POSITIONS = [
  ["earliest", "Earliest record"],
  ["latest", "End of the partition"],
  ["offset", "Offset"],
  ["time", "Time"],
  ["shift", "Shift by"],
] as const;

// The reset that the address describes, or what is missing for it.
function resetOf(query: Readonly<Record<string, string>>): Reset | string {
  const topic = query["topic"] ?? "";
  const partitions = query["partitions"] ?? "";
  const to = query["to"] ?? "earliest";
  const by = (query["by"] ?? "").trim();
  const body: Record<string, unknown> = {};
  let options = "";
  if (topic !== "") {
    body["topic"] = topic;
    options += ` --topic ${quoted(topic)}`;
  }
  if (topic !== "" && partitions !== "") {
    if (!/^\d+(,\d+)*$/.test(partitions)) return "The partitions are numbers, separated by commas";
    body["partitions"] = partitions.split(",").map(Number);
    options += ` --partition ${partitions}`;
  }
  switch (to) {
    case "earliest":
    case "latest":
      return { body: { ...body, to }, options: `${options} --to-${to}` };
    case "offset":
      if (!/^\d{1,15}$/.test(by)) return "Enter an offset";
      return { body: { ...body, offset: Number(by) }, options: `${options} --to-offset ${by}` };
    case "shift":
      if (!/^[+-]?\d{1,15}$/.test(by)) return "Enter a number, such as -100";
      return { body: { ...body, shift: Number(by) }, options: `${options} --shift-by ${Number(by)}` };
    case "time": {
      const ms = Date.parse(by);
      if (Number.isNaN(ms)) return "Enter a time";
      const time = new Date(ms).toISOString();
      return { body: { ...body, time }, options: `${options} --to-datetime ${time}` };
    }
    default:
      return "There is no such position";
  }
}

function ResetOffsets({ detail, reload }: { detail: GroupDetail; reload: () => void }) {
  const { query } = useStore(route);
  const topic = query["topic"] ?? "";
  const to = query["to"] ?? "earliest";
  const topics = [...new Set(detail.partitions.map((one) => one.topic).concat(topic === "" ? [] : [topic]))].sort();
  const reset = resetOf(query);
  return (
    <Section title="Reset offsets" note="while the group has no members" wide>
      <div class="bar-of-fields">
        <Select
          label="Topic"
          value={topic}
          options={[["", "All with a committed offset"] as const, ...topics.map((one) => [one, visible(one)] as const)]}
          onChange={(value) => setQuery({ topic: value, partitions: "" })}
        />
        {topic !== "" && <Input label="Partitions" value={query["partitions"] ?? ""} placeholder="all" onChange={(value) => setQuery({ partitions: value.replaceAll(" ", "") })} />}
        <Select label="New position" value={to} options={POSITIONS} onChange={(value) => setQuery({ to: value, by: "" })} />
        {to === "offset" && <Input label="Offset" value={query["by"] ?? ""} placeholder="0" onChange={(value) => setQuery({ by: value })} />}
        {to === "shift" && <Input label="Records" value={query["by"] ?? ""} placeholder="-100" onChange={(value) => setQuery({ by: value })} />}
        {to === "time" && <Input label="Time" type="datetime-local" value={query["by"] ?? ""} onChange={(value) => setQuery({ by: value })} />}
      </div>
      {typeof reset === "string" ? <Empty title={reset} /> : <Preview group={detail.group} reset={reset} reload={reload} />}
    </Section>
  );
}

// What a reset would change, as the node has computed it, and the button that does it.
function Preview({ group, reset, reload }: { group: string; reset: Reset; reload: () => void }) {
  const path = `${pathOf(group)}/offsets`;
  const command = `telpher group reset-offsets ${quoted(group)}${reset.options}`;
  const preview = useRead(
    `reset ${group} ${reset.options}`,
    (signal) => getJson<Changes>(path, { method: "POST", json: { ...reset.body, dry_run: true }, signal }),
    5_000,
  );
  if (isDenied(preview.error)) return <ForAdministrators title="Offsets are reset by administrators" />;
  return (
    <Shown read={preview}>
      {({ partitions }) => (
        <>
          {partitions.some((one) => one.clamped) && <p class="note">A position outside of a partition becomes its start or its end.</p>}
          <div class="bar-of-fields">
            <Action
              label="Reset offsets"
              question={question(group, partitions)}
              command={command}
              danger
              run={() => getJson(path, { method: "POST", json: reset.body })}
              onDone={() => {
                preview.reload();
                reload();
              }}
            />
            <Command text={`${command} --dry-run`} />
          </div>
          <Table
            label="Preview"
            rows={partitions}
            rowKey={(row) => `${row.topic} ${row.partition}`}
            empty={null}
            columns={[
              { title: "Topic", text: (row) => row.topic, class: "grow", cell: (row) => <a class="name" href={href(["topics", "topic", row.topic])}>{visible(row.topic)}</a> },
              { title: "Partition", number: (row) => row.partition, cell: (row) => row.partition },
              { title: "Present", number: (row) => row.committed ?? -1, cell: (row) => (row.committed === null ? "–" : count(row.committed)) },
              {
                title: "New",
                number: (row) => row.offset,
                cell: (row) => (
                  <>
                    {row.clamped && <Badge tone="warn">{row.offset === row.start ? "start" : "end"}</Badge>} <a href={href(["topics", "topic", row.topic], { partition: row.partition, from: row.offset })}>{count(row.offset)}</a>
                  </>
                ),
              },
              { title: "Lag", number: (row) => row.lag_after, cell: (row) => count(row.lag_after) },
              { title: "Change", number: change, cell: (row) => (row.lag_before === null ? "–" : signed(change(row))) },
            ]}
          />
        </>
      )}
    </Shown>
  );
}

function change(row: Change): number {
  return row.lag_before === null ? 0 : row.lag_after - row.lag_before;
}

function signed(value: number): string {
  return value > 0 ? `+${count(value)}` : count(value);
}

function question(group: string, rows: readonly Change[]): string {
  const again = rows.reduce((sum, row) => sum + Math.max(0, change(row)), 0);
  const skipped = rows.reduce((sum, row) => sum + Math.max(0, -change(row)), 0);
  const offsets = rows.length === 1 ? "1 offset" : `${count(rows.length)} offsets`;
  return `${offsets} of ${visible(group)} will be reset: its consumers will read ${count(again)} records again, and skip ${count(skipped)}.`;
}
