// The state of the page in the fragment of its address: `#/topics/orders?tab=records&from=42`.
//
// A fragment is never sent to the node, and a link with it opens the same view.

import { Store } from "./store";

export interface Route {
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export const route = new Store<Route>(parse(location.hash));

addEventListener("hashchange", () => route.set(parse(location.hash)));

function parse(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const query: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1))) query[name] = value;
  return { path: path.split("/").filter((part) => part !== "").map(decode), query };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Returns the address of a view. Parameters without a value are left out.
export function href(path: readonly string[], query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

// Opens a view.
export function go(path: readonly string[], query: Query = {}): void {
  location.hash = href(path, query);
}

// Changes parameters of the current view, without an entry in the browser's history.
export function setQuery(change: Query): void {
  const { path, query } = route.value;
  const next = href(path, { ...query, ...change });
  if (next === location.hash) return;
  history.replaceState(null, "", next);
  route.set(parse(next));
}

// Splits `org/namespace/agent` for a path of a view.
export function partsOf(name: string): string[] {
  return name.split("/");
}
