// Conversations: a list, the inbox of a participant, and one conversation as it goes on.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson, getText, inNamespace } from "../api";
import { clock, count, dateTime, quoted, visible } from "../format";
import { useEvents, useRead, useTitle } from "../hooks";
import { Action, Badge, Check, Command, Crumbs, Empty, Failure, Field, Input, Json, Page, Section, Shown, Stat, Stats, Table, Tabs, Time } from "../parts";
import { go, href, route, setQuery } from "../route";
import { useStore } from "../store";
import { Draft, Parts, callsOf, resultsOf, tokensOf, type Message } from "./message";

interface Listed {
  id: string;
  name: string;
  head_seq: number;
  start_seq: number;
  active_at: string;
  archived: boolean;
  agent?: string | null;
  metadata: Record<string, unknown>;
}

interface Conversation {
  name: string;
  version: number;
  head_seq: number;
  start_seq: number;
  created_at?: string | null;
  archived: boolean;
  agent?: string | null;
  participants?: string[] | null;
  ttl_s?: number | null;
  keep_last?: number | null;
  keep_bytes?: number | null;
  metadata: Record<string, unknown>;
  cursors: Record<string, number>;
  context: Record<string, unknown>;
  summary?: { through_seq: number; tokens?: number } | null;
  forked_from?: { conversation: string; seq: number };
  cleared_seq?: number | null;
}

interface InboxLine {
  id: string;
  head_seq: number;
  read_seq: number;
  unread: number;
  last?: { role: string; from?: string; at: string; text?: string } | null;
}

interface Context {
  messages: { seq?: number }[];
  tokens: number;
  budget: number;
  from_seq: number;
  head_seq: number;
  summary_seq?: number | null;
  dropped: Record<string, number>;
  estimated: boolean;
}

export function ConversationsPage() {
  const { path } = useStore(route);
  const org = path[1] ?? "default";
  const namespace = path[2] ?? "default";
  const id = path[3];
  if (id) return <OneConversation key={path.join("/")} org={org} namespace={namespace} id={id} />;
  return <AllConversations key={`${org}/${namespace}`} org={org} namespace={namespace} />;
}

function commandName(org: string, namespace: string, id: string): string {
  return quoted(org === "default" && namespace === "default" ? id : `${org}/${namespace}/${id}`);
}

function AllConversations({ org, namespace }: { org: string; namespace: string }) {
  useTitle("Conversations");
  const { query } = useStore(route);
  const isInbox = query["view"] === "inbox";
  const place = ["conversations", org, namespace];
  const chooseNamespace = (value: string): void => {
    const [newOrg, newNamespace, ...rest] = value.trim().split("/");
    if (newOrg && newNamespace && rest.length === 0) go(["conversations", newOrg, newNamespace]);
  };
  return (
    <Page title="Conversations" lead="Messages and streamed answers, as they are stored.">
      <div class="bar-of-fields">
        <Input label="Namespace" value={`${org}/${namespace}`} placeholder="default/default" onEnter onChange={chooseNamespace} />
        <OpenById org={org} namespace={namespace} />
      </div>
      <Tabs label="Conversations" current={isInbox ? "inbox" : "all"} tabs={[["all", "All", href(place)], ["inbox", "Inbox of a participant", href(place, { view: "inbox" })]]} />
      {isInbox ? <Inbox org={org} namespace={namespace} /> : <List org={org} namespace={namespace} />}
    </Page>
  );
}

function OpenById({ org, namespace }: { org: string; namespace: string }) {
  const [id, setId] = useState("");
  return (
    <form
      class="bar-of-fields"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim() !== "") go(["conversations", org, namespace, id.trim()]);
      }}
    >
      <Field label="Open by id">{(field) => <input id={field} value={id} placeholder="support-42" spellcheck={false} onInput={(event) => setId(event.currentTarget.value)} />}</Field>
      <button type="submit">Open</button>
    </form>
  );
}

// Returns `user=alice plan=pro` as parameters of a list.
function metadataParameters(text: string): string {
  const words = text.split(/\s+/).filter((word) => word.includes("="));
  return words
    .map((word) => {
      const at = word.indexOf("=");
      return `&metadata.${encodeURIComponent(word.slice(0, at))}=${encodeURIComponent(word.slice(at + 1))}`;
    })
    .join("");
}

// Each has up to 16 KiB of metadata.
const LIST_PAGE = 50;

function List({ org, namespace }: { org: string; namespace: string }) {
  const { query } = useStore(route);
  const filter = query["metadata"] ?? "";
  const archived = query["archived"] === "1";
  const [more, setMore] = useState<{ key: string; rows: Listed[]; next: string | null }>();
  const key = `${org}/${namespace} ${filter} ${archived}`;
  const base = `${inNamespace(org, namespace, "conversations")}?limit=${LIST_PAGE}${archived ? "&archived=true" : ""}${metadataParameters(filter)}`;
  const list = useRead(key, (signal) => getJson<{ conversations: Listed[]; next?: string | null }>(base, { signal }), 5_000);
  const extra = more?.key === key ? more : undefined;
  const next = extra ? extra.next : (list.value?.next ?? null);
  const seen = new Set(list.value?.conversations.map((one) => one.id));
  const rows = [...(list.value?.conversations ?? []), ...(extra?.rows.filter((row) => !seen.has(row.id)) ?? [])];
  const [error, setError] = useState<Error>();
  const loadMore = async (): Promise<void> => {
    if (!next) return;
    try {
      const page = await getJson<{ conversations: Listed[]; next?: string | null }>(`${base}&after=${encodeURIComponent(next)}`);
      setMore({ key, rows: [...(extra?.rows ?? []), ...page.conversations], next: page.next ?? null });
      setError(undefined);
    } catch (failed) {
      setError(failed instanceof Error ? failed : new Error(String(failed)));
    }
  };
  return (
    <Section title="All conversations" note="latest activity first" wide>
      <div class="bar-of-fields">
        <Input label="Metadata" type="search" value={filter} placeholder="user=alice plan=pro" onChange={(value) => setQuery({ metadata: value })} />
        <Check label="Archived" value={archived} onChange={(value) => setQuery({ archived: value ? 1 : "" })} />
      </div>
      <Shown read={list}>
        {() => (
          <>
            <Table
              label="Conversations"
              rows={rows}
              rowKey={(row) => row.id}
              empty={
                <Empty title={filter ? "No conversation has this metadata" : "There is no conversation"}>
                  {!filter && (<><p>The first message makes one:</p><Command text="telpher conversation append support-42 'Where is my parcel?' --from alice" /></>)}
                </Empty>
              }
              columns={[
                { title: "Conversation", text: (row) => row.id, cell: (row) => <a class="name" href={href(["conversations", org, namespace, row.id])}>{visible(row.id)}</a> },
                { title: "Messages", number: (row) => row.head_seq, cell: (row) => count(row.head_seq) },
                { title: "Last activity", number: (row) => Date.parse(row.active_at), cell: (row) => <Time ms={Date.parse(row.active_at)} /> },
                { title: "Agent", text: (row) => row.agent ?? "", cell: (row) => (row.agent ? <span class="name">{visible(row.agent)}</span> : "–") },
                { title: "Metadata", class: "grow", cell: (row) => <Metadata value={row.metadata} /> },
              ]}
            />
            {error && <Failure error={error} />}
            {next && <p class="more"><button type="button" class="small" onClick={() => void loadMore()}>Load more</button></p>}
          </>
        )}
      </Shown>
    </Section>
  );
}

function Metadata({ value }: { value: Record<string, unknown> }) {
  return (
    <span class="chips">
      {Object.entries(value).slice(0, 8).map(([name, one]) => (
        <span key={name} class="chip"><span class="note">{visible(name)}</span> {visible((typeof one === "string" ? one : JSON.stringify(one)).slice(0, 80))}</span>
      ))}
    </span>
  );
}

function Inbox({ org, namespace }: { org: string; namespace: string }) {
  const { query } = useStore(route);
  const who = query["who"] ?? "";
  const unread = query["unread"] === "1";
  const path = `${inNamespace(org, namespace, "inbox", who)}?limit=200${unread ? "&unread=true" : ""}`;
  const inbox = useRead(`inbox ${org}/${namespace} ${who} ${unread}`, async (signal) => (who === "" ? null : getJson<{ lines: InboxLine[] }>(path, { signal })), 3_000);
  return (
    <Section title="Inbox" wide>
      <div class="bar-of-fields">
        <Input label="Participant" value={who} placeholder="alice" onChange={(value) => setQuery({ who: value.trim() })} />
        <Check label="Unread only" value={unread} onChange={(value) => setQuery({ unread: value ? 1 : "" })} />
      </div>
      {who === "" ? (
        <p class="note">Enter the name of a participant: the author of messages, or one that the settings of a conversation name.</p>
      ) : (
        <Shown read={inbox}>
          {(value) => (
            <Table
              label="Inbox"
              rows={value?.lines ?? []}
              rowKey={(row) => row.id}
              empty={<Empty title="The inbox is empty" />}
              columns={[
                { title: "Conversation", text: (row) => row.id, cell: (row) => <a class="name" href={href(["conversations", org, namespace, row.id])}>{visible(row.id)}</a> },
                { title: "Unread", number: (row) => row.unread, cell: (row) => (row.unread > 0 ? <Badge tone="info">{count(row.unread)}</Badge> : "0") },
                { title: "Read to", number: (row) => row.read_seq, cell: (row) => `${count(row.read_seq)} of ${count(row.head_seq)}` },
                { title: "Last message", class: "grow", cell: (row) => (row.last ? <span class="clip"><span class="note">{visible(row.last.from ?? row.last.role)}:</span> {visible(row.last.text ?? "(no text)")}</span> : "–") },
                { title: "When", number: (row) => (row.last ? Date.parse(row.last.at) : 0), cell: (row) => (row.last ? <Time ms={Date.parse(row.last.at)} /> : "–") },
              ]}
            />
          )}
        </Shown>
      )}
    </Section>
  );
}

const FIRST = 50;
// Bytes of the messages that a page begins with.
const FIRST_BYTES = 512 * 1_024;
const KEPT = 500;

interface Thread {
  messages: Message[];
  drafts: Map<number, Draft>;
  isComplete: boolean;
}

function OneConversation({ org, namespace, id }: { org: string; namespace: string; id: string }) {
  useTitle(id);
  const { query } = useStore(route);
  const address = inNamespace(org, namespace, "conversations", id);
  const settings = useRead(`settings ${address}`, (signal) => getJson<Conversation>(address, { signal }), 3_000);
  const at = Number(query["at"] ?? 0) || 0;
  const budget = query["budget"] ?? "";
  const name = commandName(org, namespace, id);
  return (
    <Page
      title={visible(id)}
      actions={settings.value && <Fork org={org} namespace={namespace} id={id} head={settings.value.head_seq} />}
    >
      <Crumbs items={[["Conversations", ["conversations"]], [`${org}/${namespace}`, ["conversations", org, namespace]], [id, null]]} />
      <Shown read={settings}>
        {(conversation) => (
          <>
            <About conversation={conversation} org={org} namespace={namespace} />
            <Window address={address} budget={budget} name={name} version={conversation.head_seq}>
              {(context) =>
                at > 0 ? (
                  <PageAt address={address} at={at} conversation={conversation} context={context} org={org} namespace={namespace} id={id} />
                ) : (
                  <Live address={address} conversation={conversation} context={context} org={org} namespace={namespace} id={id} />
                )
              }
            </Window>
          </>
        )}
      </Shown>
    </Page>
  );
}

function About({ conversation, org, namespace }: { conversation: Conversation; org: string; namespace: string }) {
  const forked = conversation.forked_from;
  const parent = forked?.conversation;
  return (
    <>
      <Stats>
        <Stat label="Messages" value={count(conversation.head_seq - Math.max(0, conversation.start_seq - 1))} hint={conversation.start_seq > 1 ? `from ${conversation.start_seq}` : "all of them"} />
        <Stat label="Agent" value={conversation.agent ? visible(conversation.agent) : "–"} />
        <Stat label="Participants" value={conversation.participants?.length ? visible(conversation.participants.join(", ")) : "–"} />
        <Stat label="Created" value={conversation.created_at ? <Time ms={Date.parse(conversation.created_at)} /> : "–"} />
        <Stat label="Version" value={count(conversation.version)} hint={conversation.archived ? "archived" : "of its settings"} />
      </Stats>
      {(Object.keys(conversation.metadata).length > 0 || parent) && (
        <p class="row">
          <Metadata value={conversation.metadata} />
          {parent && (
            <span class="note">
              copied from <a class="name" href={href(["conversations", org, namespace, parent.split("/").at(-1) ?? parent], { at: forked?.seq })}>{visible(parent)}</a>
              {forked && ` at message ${forked.seq}`}
            </span>
          )}
        </p>
      )}
      <details class="fold">
        <summary>All settings</summary>
        <Json value={conversation} />
      </details>
    </>
  );
}

// The messages that a model would get within a budget of tokens.
function Window({ address, budget, name, version, children }: { address: string; budget: string; name: string; version: number; children: (context: Context | undefined) => ComponentChildren }) {
  const size = /^\d+$/.test(budget) ? budget : "";
  const key = `context ${address} ${size} ${version}`;
  const context = useRead(key, async (signal) => (size === "" ? null : getJson<Context>(`${address}/context?budget=${size}`, { signal })), 0, true);
  const value = context.value ?? undefined;
  const dropped = Object.entries(value?.dropped ?? {}).filter(([, many]) => many > 0);
  return (
    <>
      <Section title="What a model would get">
        <div class="bar-of-fields">
          <Input label="Budget in tokens" value={budget} placeholder="8000" onChange={(next) => setQuery({ budget: next.replace(/\D/g, "") })} />
          {size !== "" && <Command text={`telpher conversation context ${name} --budget ${size}`} />}
        </div>
        {context.error && <Failure error={context.error} />}
        {value && (
          <p class="note" role="status">
            {count(value.messages.length)} messages, {value.estimated ? "about " : ""}{count(value.tokens)} of {count(value.budget)} tokens, from message {count(value.from_seq)}
            {value.summary_seq ? `, after a summary of the messages through ${count(value.summary_seq)}` : ""}
            {dropped.length > 0 && `; dropped parts: ${dropped.map(([kind, many]) => `${many} ${kind}`).join(", ")}`}. Messages that would be left out are grey below.
          </p>
        )}
      </Section>
      {children(value)}
    </>
  );
}

interface ThreadProps {
  address: string;
  conversation: Conversation;
  context: Context | undefined;
  org: string;
  namespace: string;
  id: string;
}

// Adds a message in the order of sequence numbers, unless it is there: streams send some again after a
// reconnection.
function insert(messages: Message[], message: Message): void {
  const last = messages.at(-1);
  if (!last || last.seq < message.seq) messages.push(message);
  else if (!messages.some((one) => one.seq === message.seq)) {
    messages.splice(messages.findIndex((one) => one.seq > message.seq), 0, message);
  }
}

// The newest messages, and new ones as they come.
function Live(props: ThreadProps) {
  const { address, conversation } = props;
  // The last message of the first page. The stream continues behind it.
  const first = useRef<number | undefined>(undefined);
  const thread = useRef<Thread>({ messages: [], drafts: new Map(), isComplete: false });
  const [, render] = useState(0);
  const scheduled = useRef(0);
  const kept = useRef(KEPT);
  const [failure, setFailure] = useState<Error>();
  const changed = (): void => {
    if (scheduled.current !== 0) return;
    scheduled.current = requestAnimationFrame(() => {
      scheduled.current = 0;
      render((old) => old + 1);
    });
  };
  useEffect(() => () => cancelAnimationFrame(scheduled.current), []);
  const page = useRead(`first page ${address}`, (signal) => getJson<{ messages: Message[]; head_seq: number }>(`${address}/messages?last=${FIRST}&max_bytes=${FIRST_BYTES}`, { signal }));
  if (first.current === undefined && page.value) {
    first.current = page.value.messages.at(-1)?.seq ?? page.value.head_seq;
    thread.current.messages = [...page.value.messages];
  }
  const path = first.current === undefined ? null : `${address}/messages?after=${first.current}`;
  const problem = useEvents(path, ({ event, data }) => {
    const state = thread.current;
    const value = JSON.parse(data) as Record<string, unknown>;
    if (event === "message") {
      const message = value as unknown as Message;
      for (const [number, draft] of state.drafts) if (draft.mid === message.id) state.drafts.delete(number);
      insert(state.messages, message);
      if (state.messages.length > kept.current) state.messages.splice(0, state.messages.length - kept.current);
    } else if (event === "delta") {
      const number = value["draft"] as number;
      let draft = state.drafts.get(number);
      if (!draft) {
        draft = new Draft(number, String(value["mid"]));
        state.drafts.set(number, draft);
      }
      if (typeof value["chunk"] === "object" && value["chunk"] !== null) draft.push(value["index"] as number, value["chunk"] as Record<string, unknown>);
    } else if (event === "closed") {
      state.drafts.delete(value["draft"] as number);
    } else if (event === "cleared") {
      const through = value["cleared_seq"] as number;
      state.messages = state.messages.filter((one) => one.seq > through);
    } else if (event === "head") {
      state.isComplete = true;
    }
    changed();
  });
  const { messages, drafts, isComplete } = thread.current;
  const oldest = messages[0]?.seq ?? conversation.head_seq + 1;
  const loadEarlier = async (): Promise<void> => {
    try {
      const page = await getJson<{ messages: Message[] }>(`${address}/messages?before=${oldest}&limit=${FIRST}&max_bytes=${FIRST_BYTES}`);
      const known = new Set(messages.map((one) => one.seq));
      kept.current += page.messages.length;
      thread.current.messages = [...page.messages.filter((one) => !known.has(one.seq)), ...messages];
      setFailure(undefined);
      changed();
    } catch (error) {
      setFailure(error instanceof Error ? error : new Error(String(error)));
    }
  };
  return (
    <section class="panel wide" aria-label="Messages">
      <div class="panel-head">
        <h2>Messages</h2>
        <span class="note" role="status">{problem ? visible(problem.message) : isComplete ? "live" : "reading…"}</span>
      </div>
      {failure && <Failure error={failure} />}
      {first.current === undefined && page.error && <Failure error={page.error} />}
      {oldest > Math.max(1, conversation.start_seq) && messages.length > 0 && (
        <p class="more"><button type="button" class="small" onClick={() => void loadEarlier()}>Load earlier messages</button></p>
      )}
      {isComplete && messages.length === 0 && drafts.size === 0 && <Empty title="The conversation has no messages" />}
      <Messages {...props} messages={messages} drafts={[...drafts.values()]} />
    </section>
  );
}

// The messages around one of them.
function PageAt(props: ThreadProps & { at: number }) {
  const { address, at, conversation, org, namespace, id } = props;
  const after = Math.max(conversation.start_seq - 1, at - FIRST / 2, 0);
  const page = useRead(`page ${address} ${at}`, (signal) => getJson<{ messages: Message[] }>(`${address}/messages?after=${after}&limit=${FIRST}&max_bytes=${FIRST_BYTES}`, { signal }));
  const path = ["conversations", org, namespace, id];
  useEffect(() => {
    document.querySelector(".message.is-target")?.scrollIntoView({ block: "center" });
  }, [page.value]);
  return (
    <section class="panel wide" aria-label="Messages">
      <div class="panel-head">
        <h2>Messages around {count(at)}</h2>
        <span class="row">
          {after > 0 && <a href={href(path, { at: Math.max(1, at - FIRST) })}>Earlier</a>}
          {at + FIRST / 2 < conversation.head_seq && <a href={href(path, { at: at + FIRST })}>Later</a>}
          <a href={href(path)}>Newest, live</a>
        </span>
      </div>
      <Shown read={page}>{({ messages }) => <Messages {...props} messages={messages} drafts={[]} target={at} />}</Shown>
    </section>
  );
}

function Messages({ messages, drafts, conversation, context, org, namespace, id, target, address }: ThreadProps & { messages: readonly Message[]; drafts: readonly Draft[]; target?: number }) {
  const results = resultsOf(messages);
  const calls = callsOf(messages);
  const inWindow = useMemo(() => (context ? new Set(context.messages.map((one) => one.seq)) : null), [context]);
  const marks = new Map<number, string[]>();
  for (const [who, seq] of Object.entries(conversation.cursors)) marks.set(seq, [...(marks.get(seq) ?? []), who]);
  const name = commandName(org, namespace, id);
  return (
    <ol class="thread">
      {messages.map((message) => {
        const isOut = inWindow !== null && message.seq <= (context?.head_seq ?? 0) && !inWindow.has(message.seq);
        return (
          <li key={message.seq} class={`message role-${/^[a-z]+$/.test(message.role) ? message.role : "other"}${isOut ? " is-out" : ""}${message.seq === target ? " is-target" : ""}`}>
            {context && message.seq === context.from_seq && <p class="cut">The window of {count(context.budget)} tokens begins here</p>}
            <div class="message-head">
              <span class="author">{visible(message.from ?? message.role)}</span>
              {message.from && <span class="note">{visible(message.role)}</span>}
              {message.status && <Badge tone="warn">{visible(message.status)}</Badge>}
              {isOut && <Badge>left out</Badge>}
              <span class="note">{tokensOf(message)}</span>
              <time class="note" dateTime={message.at} title={dateTime(Date.parse(message.at))}>{clock(Date.parse(message.at))}</time>
              <a class="seq" href={href(["conversations", org, namespace, id], { at: message.seq })} aria-label={`Link to message ${message.seq}`}>#{message.seq}</a>
            </div>
            <Parts parts={message.parts} results={results} calls={calls} />
            {message.metadata && Object.keys(message.metadata).length > 0 && <Metadata value={message.metadata} />}
            {marks.has(message.seq) && <p class="read-mark">read to here: {visible(marks.get(message.seq)?.join(", ") ?? "")}</p>}
          </li>
        );
      })}
      {drafts.map((draft) => (
        <li key={`draft ${draft.draft}`} class="message role-assistant is-draft" aria-live="polite">
          <div class="message-head">
            <span class="author">{visible(draft.mid)}</span>
            <Badge tone="info">streaming</Badge>
            <Action
              label="Stop"
              question="The answer ends. What was received so far becomes the message."
              command={`curl -X POST ${location.origin}${address}/messages/${encodeURIComponent(draft.mid)}/stop   # ${name}`}
              run={() => getText(`${address}/messages/${encodeURIComponent(draft.mid)}/stop`, { method: "POST" })}
            />
          </div>
          <Parts parts={draft.parts} results={results} calls={calls} />
        </li>
      ))}
    </ol>
  );
}

function Fork({ org, namespace, id, head }: { org: string; namespace: string; id: string; head: number }) {
  const [copy, setCopy] = useState(`${id}-copy`);
  const [at, setAt] = useState(String(head));
  const address = inNamespace(org, namespace, "conversations", id);
  const body = { id: copy, at_seq: Number(at) || head };
  return (
    <Action
      label="Fork"
      question="Makes a conversation of its own with the messages through the one that you name."
      command={`curl ${location.origin}${address}/fork --json ${quoted(JSON.stringify(body))}`}
      run={() => getJson(`${address}/fork`, { method: "POST", json: body })}
      onDone={() => go(["conversations", org, namespace, copy])}
    >
      <Field label="Id of the copy">{(field) => <input id={field} value={copy} spellcheck={false} onInput={(event) => setCopy(event.currentTarget.value.trim())} />}</Field>
      <Field label="Through message">{(field) => <input id={field} type="number" min={1} max={head} value={at} onInput={(event) => setAt(event.currentTarget.value)} />}</Field>
    </Action>
  );
}
