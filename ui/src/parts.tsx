// Parts that pages are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Problem, Unreachable } from "./api";
import { dateTime, prettyText, since, visible } from "./format";
import { useNow } from "./hooks";
import { href } from "./route";

export function Page({ title, lead, actions, children }: { title: ComponentChildren; lead?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          <h1 tabIndex={-1}>{title}</h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Crumbs({ items }: { items: [string, readonly string[] | null][] }) {
  return (
    <nav class="crumbs" aria-label="Path">
      {items.map(([label, path]) => (path ? <a key={label} href={href(path)}>{label}</a> : <span key={label} aria-current="page">{visible(label)}</span>))}
    </nav>
  );
}

export function Section({ title, note, children, wide }: { title: string; note?: ComponentChildren; children: ComponentChildren; wide?: boolean }) {
  return (
    <section class={wide ? "panel wide" : "panel"}>
      <div class="panel-head">
        <h2>{title}</h2>
        {note && <span class="note">{note}</span>}
      </div>
      {children}
    </section>
  );
}

export function Stat({ label, value, hint, tone }: { label: string; value: ComponentChildren; hint?: string; tone?: "good" | "warn" | "bad" | undefined }) {
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd class={tone ?? ""}>{value}</dd>
      {hint && <dd class="stat-hint">{hint}</dd>}
    </div>
  );
}

export function Stats({ children }: { children: ComponentChildren }) {
  return <dl class="stats">{children}</dl>;
}

export function Badge({ tone, children }: { tone?: "good" | "warn" | "bad" | "info"; children: ComponentChildren }) {
  return <span class={`badge ${tone ?? ""}`}>{children}</span>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    );
  };
  return (
    <span class="command">
      <code tabIndex={0} role="group" aria-label="Command">{text}</code>
      <button type="button" class="quiet small" onClick={copy}>{copied ? "Copied" : "Copy"}</button>
    </span>
  );
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const code = error instanceof Problem ? error.code : "";
  if (error instanceof Unreachable) return <p class="failure" role="status">The node does not answer. This page tries again by itself.</p>;
  return (
    <div class="failure" role="alert">
      <p>
        {code && <a class="code" href={href(["node", "errors"], { code })}>{code}</a>} {visible(error.message)}
      </p>
      {retry && <button type="button" class="small" onClick={retry}>Try again</button>}
    </div>
  );
}

// Says that a view needs the role of an administrator.
export function ForAdministrators({ title }: { title: string }) {
  return (
    <div class="panel">
      <Empty title={title}>
        <p>Use a token with the role <code>admin</code>.</p>
      </Empty>
    </div>
  );
}

// Whether the node refused a request because the token lacks the role.
export function isDenied(error: Error | undefined): boolean {
  return error instanceof Problem && error.status === 403;
}

export function Loading() {
  return <p class="loading" role="status">Reading…</p>;
}

// Shows a value that was read, or why there is none.
export function Shown<T>({ read, children }: { read: { value: T | undefined; error: Error | undefined; reload: () => void }; children: (value: T) => ComponentChildren }) {
  const { value, error, reload } = read;
  if (value === undefined) return error ? <Failure error={error} retry={reload} /> : <Loading />;
  return (
    <>
      {error && !(error instanceof Unreachable) && <Failure error={error} retry={reload} />}
      {children(value)}
    </>
  );
}

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  // Numbers are set to the right, and sorted by this value.
  number?: (row: T) => number;
  text?: (row: T) => string;
  class?: string;
}

const ROWS = 100;

// A table of any number of rows, of which it shows the first hundred, and more on request.
export function Table<T>({ label, columns, rows, rowKey, empty, sort, descending }: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  empty: ComponentChildren;
  sort?: number;
  descending?: boolean;
}) {
  const [order, setOrder] = useState<{ column: number; descending: boolean } | null>(
    sort === undefined ? null : { column: sort, descending: descending ?? false },
  );
  const [limit, setLimit] = useState(ROWS);
  if (rows.length === 0) return <>{empty}</>;
  const column = order ? columns[order.column] : undefined;
  const sorted = column && order ? [...rows].sort(comparing(column, order.descending)) : rows;
  const choose = (index: number): void => {
    const isSame = order?.column === index;
    setOrder({ column: index, descending: isSame ? !order.descending : columns[index]?.number !== undefined });
  };
  return (
    <div class="table-box" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((one, index) => {
              const isSortable = one.number !== undefined || one.text !== undefined;
              const direction = order?.column === index ? (order.descending ? "descending" : "ascending") : undefined;
              return (
                <th key={one.title} scope="col" class={one.number ? "number" : (one.class ?? "")} aria-sort={direction}>
                  {isSortable ? (
                    <button type="button" class="sort" onClick={() => choose(index)}>
                      {one.title}
                      <span aria-hidden="true">{direction === "descending" ? " ↓" : direction ? " ↑" : ""}</span>
                    </button>
                  ) : (
                    one.title
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, limit).map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((one) => (
                <td key={one.title} class={one.number ? "number" : (one.class ?? "")}>{one.cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > limit && (
        <p class="more">
          {limit.toLocaleString("en")} of {sorted.length.toLocaleString("en")}{" "}
          <button type="button" class="small" onClick={() => setLimit(limit + 5 * ROWS)}>Show more</button>
        </p>
      )}
    </div>
  );
}

function comparing<T>(column: Column<T>, descending: boolean): (one: T, other: T) => number {
  const sign = descending ? -1 : 1;
  const { number, text } = column;
  return (one, other) => {
    if (number) return sign * (number(one) - number(other));
    if (text) return sign * text(one).localeCompare(text(other), "en", { numeric: true });
    return 0;
  };
}

export function Tabs({ label, tabs, current }: { label: string; tabs: [id: string, title: string, href: string][]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([id, title, address]) => (
        <a key={id} href={address} aria-current={id === current ? "page" : undefined}>{title}</a>
      ))}
    </nav>
  );
}

export function Field({ label, children }: { label: string; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
    </div>
  );
}

// An input whose value is taken over after a pause, or only when Enter is pressed.
export function Input({ label, value, onChange, placeholder, width, onEnter = false, type = "text" }: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  width?: string;
  onEnter?: boolean;
  type?: "text" | "search" | "datetime-local";
}) {
  const id = useId();
  const [text, setText] = useState(value);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (next: string): void => {
    setText(next);
    clearTimeout(timer.current);
    if (!onEnter) timer.current = setTimeout(() => onChange(next), 300);
  };
  return (
    <div class={`field ${width ?? ""}`}>
      <label for={id}>{label}</label>
      <input
        id={id}
        // The types of elements differ by this attribute, which they all have.
        type={type as "text"}
        value={text}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          clearTimeout(timer.current);
          onChange(event.currentTarget.value);
        }}
      />
    </div>
  );
}

export function Select({ label, value, options, onChange }: { label: string; value: string; options: readonly (readonly [string, string])[]; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([one, title]) => (
          <option key={one} value={one}>{title}</option>
        ))}
      </select>
    </div>
  );
}

export function Check({ label, value, onChange }: { label: string; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

// A button that changes something: the first click says what will happen and which command does the
// same, the second one does it.
export function Action({ label, question, command, run, onDone, danger, disabled, children }: {
  label: string;
  question: string;
  command: string;
  run: () => Promise<unknown>;
  onDone?: () => void;
  danger?: boolean;
  disabled?: boolean;
  children?: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const first = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(false);
    setError(undefined);
    first.current?.focus();
  };
  const confirm = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await run();
      setOpen(false);
      onDone?.();
    } catch (failed) {
      setError(failed instanceof Error ? failed : new Error(String(failed)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <span class="action">
      <button ref={first} type="button" class={danger ? "danger small" : "small"} disabled={disabled ?? false} aria-expanded={isOpen} onClick={() => (isOpen ? close() : setOpen(true))}>
        {label}
      </button>
      {isOpen && (
        <Dialog title={label} onClose={close}>
          <p>{question}</p>
          {children}
          <p class="same">The same on the command line:</p>
          <Command text={command} />
          {error && <Failure error={error} />}
          <div class="dialog-actions">
            <button type="button" onClick={close}>Cancel</button>
            <button type="button" class={danger ? "danger solid" : "primary"} disabled={isBusy} onClick={() => void confirm()}>
              {isBusy ? "Working…" : `Confirm: ${label}`}
            </button>
          </div>
        </Dialog>
      )}
    </span>
  );
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

export function Time({ ms }: { ms: number }) {
  const now = useNow(5_000);
  return <time dateTime={new Date(ms).toISOString()} title={dateTime(ms)}>{since(ms, now)}</time>;
}

// Prose of a client, of which a long one is shown in part.
export function Prose({ text, limit = 20_000 }: { text: string; limit?: number }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = text.length > limit && !isWhole;
  return (
    <>
      <div class="text" dir="auto">{visible(isCut ? text.slice(0, limit) : text)}</div>
      {isCut && <ShowAll length={text.length} onClick={() => setWhole(true)} />}
    </>
  );
}

function ShowAll({ length, onClick }: { length: number; onClick: () => void }) {
  return <button type="button" class="quiet small" onClick={onClick}>Show all {length.toLocaleString("en")} characters</button>;
}

// A text of a client, shown as it is: JSON gets line breaks, control characters become visible, and a
// long text is shown in part.
export function Body({ text, limit = 4_000 }: { text: string; limit?: number }) {
  const [isWhole, setWhole] = useState(false);
  const shown = text.length > limit && !isWhole ? text.slice(0, limit) : prettyText(text);
  return (
    <div class="body">
      <pre tabIndex={0} role="group" aria-label="Content" dir="auto">{visible(shown)}</pre>
      {text.length > limit && !isWhole && <ShowAll length={text.length} onClick={() => setWhole(true)} />}
    </div>
  );
}

export function Json({ value }: { value: unknown }) {
  return <Body text={JSON.stringify(value)} />;
}

export function Bar({ share, label, tone }: { share: number; label: string; tone?: "good" | "warn" | "bad" | undefined }) {
  const part = Math.max(0, Math.min(1, share));
  return (
    <span class="bar" role="img" aria-label={label} title={label}>
      <span class={tone ?? ""} style={{ width: `${(part * 100).toFixed(1)}%` }} />
    </span>
  );
}
