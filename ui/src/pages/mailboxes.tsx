// Mailboxes: messages that wait for agents, how often they were delivered, and dead letters.

import { useState } from "preact/hooks";
import { callNode } from "../api";
import { bytes, count, duration, quoted, visible } from "../format";
import { useRead, useTitle } from "../hooks";
import { Action, Badge, Body, Command, Crumbs, Empty, Failure, Input, Page, Section, Shown, Stat, Stats, Table, Tabs, Time } from "../parts";
import { href, partsOf, route, setQuery } from "../route";
import { useStore } from "../store";
import type { Mailbox } from "./agents";

interface Message {
  offset: number;
  sender: string;
  method: string;
  written_ms: number;
  expires_ms: number | null;
  deliveries: number;
  state: string;
  pause_ms: number | null;
  cause: string | null;
  // The start of the body.
  body?: string;
  body_base64?: string;
  // Size of the whole body in bytes.
  size: number;
}

const PAGE = 100;

// Bytes of a body that are shown at first.
const BODY = 1_000;

interface Messages {
  messages: Message[];
  // The offset from which the next page continues.
  next: number | null;
}

export function MailboxesPage() {
  const { path } = useStore(route);
  const [, org, namespace, agent] = path;
  if (org && namespace && agent) return <OneMailbox key={path.join("/")} name={`${org}/${namespace}/${agent}`} />;
  return <AllMailboxes />;
}

function AllMailboxes() {
  useTitle("Mailboxes");
  const { query } = useStore(route);
  const prefix = query["prefix"] ?? "";
  const after = query["after"] ?? "";
  const list = useRead(`mailboxes ${prefix} ${after}`, (signal) => callNode<{ mailboxes: Mailbox[] }>("mailboxes", { prefix, after, limit: 1_000 }, signal), 5_000);
  return (
    <Page title="Mailboxes" lead="Messages that wait until an agent acknowledges them.">
      <div class="bar-of-fields">
        <Input label="Names that begin with" type="search" value={prefix} placeholder="acme/" onChange={(value) => setQuery({ prefix: value, after: "" })} />
      </div>
      <Section title="Mailboxes" wide>
        <Shown read={list}>
          {({ mailboxes }) => (
            <>
              <Table
                label="Mailboxes"
                rows={mailboxes}
                rowKey={(row) => row.name}
                empty={
                  <Empty title="No mailbox has this name">
                    <p>The first message makes one:</p>
                    <Command text="telpher write acme/demo/worker 'job 7'" />
                  </Empty>
                }
                columns={[
                  { title: "Agent", text: (row) => row.name, class: "grow", cell: (row) => <a class="name" href={href(["mailboxes", ...partsOf(row.name)])}>{visible(row.name)}</a> },
                  { title: "Waiting", number: (row) => row.messages, cell: (row) => count(row.messages) },
                  { title: "In delivery", number: (row) => row.unanswered, cell: (row) => count(row.unanswered) },
                  { title: "Dead letters", number: (row) => row.dead, cell: (row) => (row.dead > 0 ? <Badge tone="bad">{count(row.dead)}</Badge> : "0") },
                  { title: "Size", number: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
                  { title: "Oldest offset", number: (row) => row.oldest ?? -1, cell: (row) => row.oldest ?? "–" },
                ]}
              />
              {mailboxes.length === 1_000 && <p class="more"><a href={href(["mailboxes"], { prefix, after: mailboxes.at(-1)?.name })}>Next page</a></p>}
            </>
          )}
        </Shown>
      </Section>
    </Page>
  );
}

function OneMailbox({ name }: { name: string }) {
  useTitle(`Mailbox ${name}`);
  const { query } = useStore(route);
  const isDead = query["show"] === "dead";
  const from = Number(query["from"] ?? 0) || 0;
  const view = useRead(`mailbox ${name}`, async (signal) => {
    const { mailboxes } = await callNode<{ mailboxes: Mailbox[] }>("mailboxes", { prefix: name, after: "", limit: 1 }, signal);
    return mailboxes.find((one) => one.name === name) ?? null;
  }, 3_000);
  const messages = useRead(`messages ${name} ${isDead} ${from}`, (signal) => callNode<Messages>("messages", { name, dead: isDead, from, limit: PAGE, body_size_max: BODY }, signal), 3_000);
  const reload = (): void => {
    view.reload();
    messages.reload();
  };
  const path = ["mailboxes", ...partsOf(name)];
  const dead = view.value?.dead ?? 0;
  return (
    <Page
      title={visible(name)}
      actions={
        <>
          {dead > 0 && (
            <Action label="Retry all dead letters" question={`${count(dead)} dead letters are delivered again.`} command={`telpher mailbox retry ${quoted(name)} --all`} run={() => callNode("retry", { name, offset: null })} onDone={reload} />
          )}
          {dead > 0 && (
            <Action label="Remove dead letters" danger question={`${count(dead)} dead letters are removed and cannot be recovered.`} command={`telpher mailbox purge ${quoted(name)} --dead`} run={() => callNode("purge", { name, dead: true })} onDone={reload} />
          )}
          {(view.value?.messages ?? 0) + dead > 0 && (
            <Action label="Remove all" danger question="Every message, dead letters included, is removed and cannot be recovered." command={`telpher mailbox purge ${quoted(name)}`} run={() => callNode("purge", { name, dead: false })} onDone={reload} />
          )}
        </>
      }
    >
      <Crumbs items={[["Mailboxes", ["mailboxes"]], [name, null]]} />
      <Stats>
        <Stat label="Waiting" value={count(view.value?.messages ?? 0)} />
        <Stat label="In delivery" value={count(view.value?.unanswered ?? 0)} />
        <Stat label="Dead letters" value={count(dead)} tone={dead > 0 ? "bad" : undefined} />
        <Stat label="Size" value={bytes(view.value?.bytes ?? 0)} />
      </Stats>
      <p><a href={href(["agents", ...partsOf(name)])}>Open the agent</a></p>
      <Tabs label="Messages" current={isDead ? "dead" : "live"} tabs={[["live", "Waiting", href(path)], ["dead", `Dead letters${dead > 0 ? ` (${dead})` : ""}`, href(path, { show: "dead" })]]} />
      <Section title={isDead ? "Dead letters" : "Waiting messages"} note="oldest first" wide>
        <Shown read={messages}>
          {({ messages: rows, next }) => (
            <>
              <Table
                label="Messages"
                rows={rows}
                rowKey={(row) => String(row.offset)}
                empty={<Empty title={isDead ? "There are no dead letters" : "No message waits"} />}
                columns={[
                  { title: "Offset", number: (row) => row.offset, cell: (row) => row.offset },
                  { title: "Written", number: (row) => row.written_ms, cell: (row) => <Time ms={row.written_ms} /> },
                  { title: "From", text: (row) => row.sender, cell: (row) => <span class="name">{visible(row.sender)}</span> },
                  { title: "Method", text: (row) => row.method, cell: (row) => visible(row.method || "–") },
                  { title: "Deliveries", number: (row) => row.deliveries, cell: (row) => count(row.deliveries) },
                  {
                    title: "State",
                    text: (row) => row.state,
                    cell: (row) => (
                      <>
                        <Badge tone={isDead ? "bad" : row.state === "waiting" ? "info" : "warn"}>{visible(row.state)}</Badge>
                        {row.pause_ms !== null && <span class="note"> for {duration(row.pause_ms)}</span>}
                        {row.cause && <span class="note"> {visible(row.cause)}</span>}
                      </>
                    ),
                  },
                  { title: "Body", class: "grow", cell: (row) => <Content message={row} mailbox={name} isDead={isDead} /> },
                  {
                    title: "Actions",
                    cell: (row) => (
                      <span class="row nowrap-row">
                        {isDead && <Action label="Retry" question={`Message ${row.offset} is delivered again.`} command={`telpher mailbox retry ${quoted(name)} ${row.offset}`} run={() => callNode("retry", { name, offset: row.offset })} onDone={reload} />}
                        <Action label="Remove" danger question={`Message ${row.offset} is acknowledged on behalf of the agent: it is not delivered again.`} command={`telpher mailbox ack ${quoted(name)} ${row.offset}`} run={() => callNode("acknowledge", { name, offset: row.offset })} onDone={reload} />
                      </span>
                    ),
                  },
                ]}
              />
              {next !== null && <p class="more"><a href={href(path, { show: isDead ? "dead" : "", from: next })}>Next page</a></p>}
            </>
          )}
        </Shown>
      </Section>
    </Page>
  );
}

function Content({ message, mailbox, isDead }: { message: Message; mailbox: string; isDead: boolean }) {
  const [whole, setWhole] = useState<Message>();
  const [error, setError] = useState<Error>();
  const { body, body_base64: base64 } = whole ?? message;
  const text = body ?? `(base64) ${base64 ?? ""}`;
  const load = async (): Promise<void> => {
    try {
      const { messages } = await callNode<Messages>("messages", { name: mailbox, dead: isDead, from: message.offset, limit: 1 });
      setWhole(messages.find((one) => one.offset === message.offset));
    } catch (failed) {
      setError(failed instanceof Error ? failed : new Error(String(failed)));
    }
  };
  return (
    <details class="inline">
      <summary><span class="name clip">{visible(text.slice(0, 120))}</span></summary>
      <Body text={text} />
      {message.size > BODY && !whole && (
        <button type="button" class="quiet small" onClick={() => void load()}>Load all {bytes(message.size)}</button>
      )}
      {error && <Failure error={error} />}
    </details>
  );
}
