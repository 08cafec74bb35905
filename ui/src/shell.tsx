// The frame of all pages: navigation, the state of the connection, the token, the theme.

import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, hasToken, link, send, setToken, tokenRefused, tokenWanted } from "./api";
import { visible } from "./format";
import { useRead } from "./hooks";
import { Dialog } from "./parts";
import { AgentsPage } from "./pages/agents";
import { ConversationsPage } from "./pages/conversations";
import { MailboxesPage } from "./pages/mailboxes";
import { NodePage } from "./pages/node";
import { NowPage } from "./pages/now";
import { QuotasPage } from "./pages/quotas";
import { TopicsPage } from "./pages/topics";
import { href, route } from "./route";
import { useStore } from "./store";
import { chooseTheme, theme } from "./theme";

interface Entry {
  id: string;
  title: string;
  // The path of its icon, on a grid of 16 by 16.
  icon: string;
  page: ComponentType;
}

const PAGES: readonly Entry[] = [
  { id: "now", title: "Now", icon: "M1.5 9h3l2-5.5 3.5 9 2-3.5h2.5", page: NowPage },
  { id: "agents", title: "Agents", icon: "M8 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM3 14c0-3 2-4.5 5-4.5s5 1.5 5 4.5", page: AgentsPage },
  { id: "conversations", title: "Conversations", icon: "M2 3h12v8H7l-3 2.5V11H2z", page: ConversationsPage },
  { id: "topics", title: "Topics", icon: "M2 4h12M2 8h12M2 12h8", page: TopicsPage },
  { id: "quotas", title: "Quotas", icon: "M2.5 12.5a6 6 0 1 1 11 0M8 10.5l3-4", page: QuotasPage },
  { id: "mailboxes", title: "Mailboxes", icon: "M2 4h12v9H2zM2 4.5l6 4.5 6-4.5", page: MailboxesPage },
  { id: "node", title: "Node", icon: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.5M5 11h.5", page: NodePage },
];

export function Shell() {
  const { path } = useStore(route);
  const id = path[0] ?? "now";
  const entry = PAGES.find((one) => one.id === id);
  const isFirst = useRef(true);
  useEffect(() => {
    // A screen reader continues at the new page.
    if (isFirst.current) isFirst.current = false;
    else document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path.join("/")]);
  const Current = entry?.page;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <header class="top">
        <a class="brand" href={href(["now"])} aria-label="Telpher console">
          <Mark />
          <span>Telpher</span>
        </a>
        <nav class="pages" aria-label="Pages">
          {PAGES.map((one) => (
            <a key={one.id} href={href([one.id])} aria-current={one.id === id ? "page" : undefined}>
              <svg viewBox="0 0 16 16" aria-hidden="true"><path d={one.icon} /></svg>
              <span>{one.title}</span>
            </a>
          ))}
        </nav>
        <div class="tools">
          <Connection />
          <TokenButton />
          <ThemeButton />
        </div>
      </header>
      <main id="main">
        <Banner />
        <OtherMember />
        {Current ? <Current /> : <Unknown />}
      </main>
      <TokenDialog />
    </div>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("main h1")?.focus();
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M5 9.5h22M16 9.5v6M9.5 15.5h13v7.5a2 2 0 0 1-2 2h-9a2 2 0 0 1-2-2z" />
    </svg>
  );
}

function Unknown() {
  return (
    <div class="empty">
      <h1 tabIndex={-1}>There is no such page</h1>
      <p><a href={href(["now"])}>Back to the node now</a></p>
    </div>
  );
}

// Whether the node accepts work.
function Connection() {
  const state = useStore(link);
  const ready = useRead("ready", async (signal) => {
    const answer = await send("/readyz", { signal });
    if (answer.ok) return "";
    const problem = (await answer.json().catch(() => ({}))) as { detail?: string };
    return problem.detail ?? "not ready";
  }, 5_000);
  const version = useRead("version", (signal) => getJson<{ version: string }>("/version", { signal }));
  const isReady = state === "online" && (ready.value ?? "") === "";
  const text = state === "offline" ? "No answer" : isReady ? "Ready" : "Not ready";
  return (
    <span class="connection" title={ready.value || undefined}>
      <span class={`dot ${state === "offline" ? "bad" : isReady ? "good" : "warn"}`} aria-hidden="true" />
      <span role="status">{text}</span>
      {version.value && <span class="version">{version.value.version}</span>}
    </span>
  );
}

function Banner() {
  const state = useStore(link);
  const [since, setSince] = useState(0);
  useEffect(() => {
    if (state === "offline") setSince(Date.now());
  }, [state]);
  if (state === "online") return null;
  return (
    <div class="banner" role="alert">
      <strong>The node does not answer.</strong> What is shown is from {new Date(since || Date.now()).toLocaleTimeString()} or
      earlier. The page tries again by itself and continues when the node is back.
    </div>
  );
}

interface Cluster {
  clustered: boolean;
  node: number;
  members: { id: number; name: string; http?: string | null }[];
}

// Says so if this page is that of a member of a cluster that passes requests to the leader.
function OtherMember() {
  const { path, query } = useStore(route);
  const cluster = useRead("members", (signal) => getJson<Cluster>("/v1/cluster", { signal }), 10_000);
  if (!cluster.value?.clustered) return null;
  const { node, members } = cluster.value;
  const here = members.find((one) => one.http && normal(one.http) === normal(location.host));
  const leader = members.find((one) => one.id === node);
  if (!here || !leader || here.id === leader.id) return null;
  return (
    <p class="member-note" role="status">
      This page is that of the member {visible(here.name)}, which passes requests to the leader {visible(leader.name)}
      {leader.http && <>: <a href={`${location.protocol}//${leader.http}/ui/${href(path, query)}`}>open the console of {visible(leader.name)}</a></>}
    </p>
  );
}

function normal(host: string): string {
  return host.replace(/^localhost:/, "127.0.0.1:");
}

function ThemeButton() {
  const current = useStore(theme);
  const isDark = current === "dark" || (current === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = isDark ? "light" : "dark";
  return (
    <button type="button" class="icon" aria-label={`Use the ${next} theme`} title={`Use the ${next} theme`} onClick={() => chooseTheme(next)}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {isDark ? (
          <path d="M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1" />
        ) : (
          <path d="M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z" />
        )}
      </svg>
    </button>
  );
}

function TokenButton() {
  const has = useStore(hasToken);
  const isRefused = useStore(tokenRefused);
  if (isRefused) return <button type="button" class="quiet small" onClick={ask}>Enter a token</button>;
  if (!has) return null;
  return <button type="button" class="quiet small" onClick={() => setToken("")}>Forget the token</button>;
}

function ask(): void {
  tokenRefused.set(false);
  tokenWanted.set(true);
}

function dismiss(): void {
  tokenWanted.set(false);
  tokenRefused.set(true);
}

function TokenDialog() {
  const isWanted = useStore(tokenWanted);
  const has = useStore(hasToken);
  const [text, setText] = useState("");
  if (!isWanted) return null;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim() === "") return;
    setToken(text);
    setText("");
  };
  return (
    <Dialog title="Token" onClose={dismiss}>
      <form onSubmit={submit}>
        <p>
          {has
            ? "The node does not accept this token: it is wrong, or was revoked."
            : "This node requires a token. It is kept in the memory of this tab only."}
        </p>
        <div class="field">
          <label for="token">Token</label>
          <input id="token" type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} autofocus />
        </div>
        <p class="same">
          An administrator makes one: <code>telpher token add NAME</code>
        </p>
        <div class="dialog-actions">
          <button type="button" onClick={dismiss}>Cancel</button>
          <button type="submit" class="primary">Use the token</button>
        </div>
      </form>
    </Dialog>
  );
}
