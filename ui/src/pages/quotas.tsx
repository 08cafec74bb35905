// Quotas: limits, what is left for a subject, who is denied most, halts, overrides and the audit.

import { useState } from "preact/hooks";
import { getJson } from "../api";
import { bytes, count, duration, quoted, visible } from "../format";
import { useRead, useTitle } from "../hooks";
import { Action, Badge, Bar, Command, Empty, Field, ForAdministrators, Input, Page, Section, Select, Shown, Table, Tabs, Time, isDenied } from "../parts";
import { href, partsOf, route, setQuery } from "../route";
import { useStore } from "../store";

interface Limit {
  name: string;
  match: string;
  unit: string;
  capacity?: number;
  refill?: string;
  budget?: number;
  every?: string;
  tz?: string;
  mode?: string;
  durability?: string;
  factor?: string;
  factor_now?: string;
  warn?: string[];
}

export interface LimitState {
  name: string;
  unit: string;
  remaining: number;
  capacity: number;
  reset_ms: number | null;
  would_deny?: boolean;
  shared?: boolean;
}

interface Override {
  limit: string;
  prefix: string;
  capacity: number | null;
  refill: string | null;
  until: string | null;
  by?: string;
  reason?: string;
}

interface Halt {
  since: string;
  by: string;
  reason: string;
}

interface TopRow {
  name: string;
  limit: string | null;
  count: number;
}

interface Change {
  number: number;
  at: string;
  by: string;
  what: string;
  reason: string;
  version: number;
}

const TABS = ["limits", "usage", "halts", "audit"] as const;
const TITLES: Record<(typeof TABS)[number], string> = { limits: "Limits", usage: "Largest users", halts: "Halts", audit: "Audit" };

export function QuotasPage() {
  useTitle("Quotas");
  const { path } = useStore(route);
  const tab = TABS.find((one) => one === path[1]) ?? "limits";
  const halts = useRead("halts", (signal) => getJson<{ halts: Record<string, Halt> }>("/v1/halts", { signal }), 5_000);
  const halted = Object.keys(halts.value?.halts ?? {}).length;
  return (
    <Page title="Quotas" lead="What agents may spend, and what they are denied.">
      <Tabs
        label="Quotas"
        current={tab}
        tabs={TABS.map((one) => [one, one === "halts" && halted > 0 ? `${TITLES[one]} (${halted})` : TITLES[one], href(["quotas", one])])}
      />
      {tab === "limits" && <Limits />}
      {tab === "usage" && <Usage />}
      {tab === "halts" && <Halts halts={halts} />}
      {tab === "audit" && <Audit />}
    </Page>
  );
}

// An amount of a unit.
function amount(value: number, unit: string): string {
  if (unit === "appended_bytes" || unit === "bytes") return bytes(value);
  if (unit === "usd_micros") return `$${(value / 1e6).toFixed(value % 10_000 === 0 ? 2 : 4)}`;
  return count(value);
}

function size(limit: Limit): string {
  if (limit.budget !== undefined) return `${amount(limit.budget, limit.unit)} every ${limit.every ?? "period"}`;
  if (limit.refill !== undefined) return `${amount(limit.capacity ?? 0, limit.unit)}, refill ${limit.refill}`;
  return `${amount(limit.capacity ?? 0, limit.unit)} at once`;
}

// Groups limits by what they match, from the widest to the narrowest.
function byPattern(limits: readonly Limit[]): [string, Limit[]][] {
  const groups = new Map<string, Limit[]>();
  for (const limit of limits) {
    const group = groups.get(limit.match);
    if (group) group.push(limit);
    else groups.set(limit.match, [limit]);
  }
  return [...groups].sort(([one], [other]) => depth(one) - depth(other) || one.localeCompare(other));
}

function depth(pattern: string): number {
  return pattern.split("/").length + (pattern.includes("?") ? 1 : 0);
}

function Limits() {
  const { query } = useStore(route);
  const subject = query["subject"] ?? "";
  const policies = useRead("policies", (signal) => getJson<{ version: number; limits: Limit[] }>("/v1/policies", { signal }), 10_000);
  const overrides = useRead("overrides", (signal) => getJson<{ overrides: Override[] }>("/v1/overrides", { signal }), 10_000);
  return (
    <>
      <Section title="What is left for a subject">
        <div class="bar-of-fields">
          <Input label="Subject" type="search" width="wide-field" value={subject} placeholder="acme/research/bot or acme/research/bot?run=7" onChange={(value) => setQuery({ subject: value })} />
        </div>
        {subject.split("/").length >= 3 ? <Subject subject={subject} /> : <p class="note">Enter org/namespace/agent, as in <code>telpher quota peek acme/research/bot</code>.</p>}
      </Section>
      <Section title="Limits" note={policies.value ? `version ${policies.value.version}` : undefined}>
        <Shown read={policies}>
          {({ limits }) =>
            limits.length === 0 ? (
              <Empty title="There are no limits">
                <p>Limits are defined in the configuration, or with</p>
                <Command text="telpher quota policies --set limits.json --reason 'first limits'" />
              </Empty>
            ) : (
              <ul class="limit-tree">
                {byPattern(limits).map(([pattern, group]) => (
                  <li key={pattern}>
                    <h3 class="name">{visible(pattern)}</h3>
                    <ul>
                      {group.map((limit) => (
                        <li key={limit.name} class="limit">
                          <span class="limit-name">{visible(limit.name)}</span>
                          <span class="unit">{visible(limit.unit)}</span>
                          <span class="limit-size">{size(limit)}</span>
                          <span class="badges">
                            {limit.mode && limit.mode !== "enforce" && <Badge tone="info">{limit.mode}</Badge>}
                            {limit.durability === "sync" && <Badge>sync</Badge>}
                            {limit.factor_now && <Badge tone="warn">factor {limit.factor_now}</Badge>}
                            {(limit.warn ?? []).map((share) => <Badge key={share}>warns at {share}</Badge>)}
                          </span>
                          {(overrides.value?.overrides ?? [])
                            .filter((one) => one.limit === limit.name)
                            .map((one) => (
                              <p key={one.prefix} class="override">
                                <Badge tone="info">override</Badge> <span class="name">{visible(one.prefix)}</span>{" "}
                                {one.capacity !== null && `capacity ${amount(one.capacity, limit.unit)} `}
                                {one.refill && `refill ${one.refill} `}
                                {one.until && <>until <time dateTime={one.until}>{new Date(one.until).toLocaleString()}</time> </>}
                                {one.reason && <span class="note">{visible(one.reason)}</span>}
                              </p>
                            ))}
                        </li>
                      ))}
                    </ul>
                  </li>
                ))}
              </ul>
            )
          }
        </Shown>
      </Section>
    </>
  );
}

function Subject({ subject }: { subject: string }) {
  const [name = "", run] = subject.split("?run=");
  const path = `/v1/quota/${partsOf(name).map(encodeURIComponent).join("/")}${run ? `?run=${encodeURIComponent(run)}` : ""}`;
  const state = useRead(path, (signal) => getJson<{ limits: LimitState[] }>(path, { signal }), 2_000);
  return <Shown read={state}>{({ limits }) => <LimitStates limits={limits} />}</Shown>;
}

// The state of every limit of a subject.
export function LimitStates({ limits }: { limits: readonly LimitState[] }) {
  return (
    <Table
      label="State of the limits"
      rows={limits}
      rowKey={(row) => row.name}
      empty={<Empty title="No limit applies to it" />}
      columns={[
        { title: "Limit", text: (row) => row.name, cell: (row) => visible(row.name) },
        { title: "Unit", text: (row) => row.unit, cell: (row) => visible(row.unit) },
        { title: "Left", number: (row) => row.remaining, cell: (row) => amount(row.remaining, row.unit) },
        { title: "Of", number: (row) => row.capacity, cell: (row) => amount(row.capacity, row.unit) },
        {
          title: "Share",
          class: "bar-cell",
          cell: (row) => {
            const share = row.capacity > 0 ? row.remaining / row.capacity : 0;
            const tone = share <= 0 ? "bad" : share < 0.2 ? "warn" : "good";
            return <Bar share={share} tone={tone} label={`${(share * 100).toFixed(0)} % left`} />;
          },
        },
        { title: "Full in", number: (row) => row.reset_ms ?? Number.MAX_SAFE_INTEGER, cell: (row) => (row.reset_ms === null ? "never by itself" : row.reset_ms === 0 ? "full" : duration(row.reset_ms)) },
        {
          title: "Notes",
          cell: (row) => (
            <>
              {row.would_deny && <Badge tone="warn">would deny</Badge>}
              {row.shared && <Badge tone="info">shared bucket</Badge>}
            </>
          ),
        },
      ]}
    />
  );
}

const RANKINGS = [
  ["denied", "Denied most"],
  ["taken", "Taken most"],
  ["debt", "Largest debt"],
] as const;

function Usage() {
  const { query } = useStore(route);
  const by = query["by"] ?? "denied";
  const top = useRead(`top ${by}`, (signal) => getJson<{ rows: TopRow[] }>(`/v1/top?by=${encodeURIComponent(by)}&count=200`, { signal, isShared: true }), 5_000);
  return (
    <Section title="Largest users" note={by === "denied" ? "denied takes since the node's start" : undefined}>
      <div class="bar-of-fields">
        <Select label="Order" value={by} options={RANKINGS} onChange={(value) => setQuery({ by: value })} />
      </div>
      <Shown read={top}>
        {({ rows }) => (
          <Table
            label="Largest users"
            rows={rows}
            rowKey={(row) => `${row.name} ${row.limit ?? ""}`}
            empty={<Empty title={by === "denied" ? "No agent was denied" : "No agent uses a limit"} />}
            columns={[
              { title: "Subject", text: (row) => row.name, class: "grow", cell: (row) => <a class="name" href={href(["quotas", "limits"], { subject: row.name })}>{visible(row.name)}</a> },
              { title: "Limit", text: (row) => row.limit ?? "", cell: (row) => (row.limit ? visible(row.limit) : "–") },
              { title: "Count", number: (row) => row.count, cell: (row) => count(row.count) },
            ]}
          />
        )}
      </Shown>
    </Section>
  );
}

function Halts({ halts }: { halts: ReturnType<typeof useRead<{ halts: Record<string, Halt> }>> }) {
  const [prefix, setPrefix] = useState("");
  const [reason, setReason] = useState("");
  const [resumeReason, setResumeReason] = useState("resumed in the console");
  const rows = Object.entries(halts.value?.halts ?? {}).map(([name, halt]) => ({ name, ...halt }));
  const why = reason.trim();
  return (
    <>
      <Section title="Halt" note="denies every take and every change below a name">
        <div class="bar-of-fields">
          <Field label="Name or prefix">{(id) => <input id={id} value={prefix} placeholder="acme/research" spellcheck={false} onInput={(event) => setPrefix(event.currentTarget.value.trim())} />}</Field>
          <Field label="Reason, for the audit">{(id) => <input id={id} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
          <Action
            label="Halt"
            danger
            disabled={prefix === "" || why === ""}
            question={`Nothing below ${prefix} may take, send or change anything until it is resumed.`}
            command={`telpher quota halt ${quoted(prefix)} --reason ${quoted(why)}`}
            run={() => getJson("/v1/halt", { method: "POST", json: { prefix, reason: why } })}
            onDone={() => {
              setPrefix("");
              setReason("");
              halts.reload();
            }}
          />
        </div>
      </Section>
      <Section title="Halted now">
        <Shown read={halts}>
          {() => (
            <Table
              label="Halted names"
              rows={rows}
              rowKey={(row) => row.name}
              empty={<Empty title="Nothing is halted" />}
              columns={[
                { title: "Name", text: (row) => row.name, class: "grow", cell: (row) => <span class="name">{visible(row.name)}</span> },
                { title: "Since", cell: (row) => <Time ms={Date.parse(row.since)} /> },
                { title: "By", text: (row) => row.by, cell: (row) => visible(row.by) },
                { title: "Reason", cell: (row) => visible(row.reason) },
                {
                  title: "Action",
                  cell: (row) => (
                    <Action
                      label="Resume"
                      question={`${row.name} may take, send and change again.`}
                      command={`telpher quota resume ${quoted(row.name)} --reason ${quoted(resumeReason)}`}
                      run={() => getJson("/v1/resume", { method: "POST", json: { prefix: row.name, reason: resumeReason } })}
                      onDone={halts.reload}
                    >
                      <Field label="Reason, for the audit">{(id) => <input id={id} value={resumeReason} onInput={(event) => setResumeReason(event.currentTarget.value)} />}</Field>
                    </Action>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Section>
    </>
  );
}

const AUDIT_PAGE = 200;

function Audit() {
  const audit = useRead("audit", async (signal) => (await getJson<{ changes: Change[] }>(`/v1/audit?last=${AUDIT_PAGE}`, { signal })).changes.reverse());
  if (isDenied(audit.error)) return <ForAdministrators title="The audit is for administrators" />;
  return (
    <Section title="Audit" note={`the newest ${AUDIT_PAGE} changes`}>
      <Shown read={audit}>
        {(changes) => (
          <Table
            label="Audit"
            rows={changes}
            rowKey={(row) => String(row.number)}
            empty={<Empty title="Nothing was changed" />}
            columns={[
              { title: "No.", number: (row) => row.number, cell: (row) => row.number },
              { title: "When", cell: (row) => <Time ms={Date.parse(row.at)} /> },
              { title: "By", text: (row) => row.by, cell: (row) => visible(row.by) },
              { title: "What", class: "grow", cell: (row) => <span class="name">{visible(typeof row.what === "string" ? row.what : JSON.stringify(row.what))}</span> },
              { title: "Reason", cell: (row) => visible(row.reason) },
            ]}
          />
        )}
      </Shown>
    </Section>
  );
}
