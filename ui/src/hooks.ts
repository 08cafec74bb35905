// Hooks: reading from the node once, repeatedly and as events.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem, epoch, follow, type ServerEvent } from "./api";
import { useStore } from "./store";

export interface Read<T> {
  // The newest value. It stays while a later read fails.
  value: T | undefined;
  error: Error | undefined;
  reload: () => void;
}

// Reads a value, and again every `every` milliseconds while the page is visible. `key` names what is
// read: with another key the old value is dropped, or stays until the new one is there (`keep`).
export function useRead<T>(key: string, read: (signal: AbortSignal) => Promise<T>, every = 0, keep = false): Read<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: Error }>({ key });
  const [turn, setTurn] = useState(0);
  const version = useStore(epoch);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const abort = new AbortController();
    let timer: number | undefined;
    const step = async (): Promise<void> => {
      let next = every;
      try {
        const value = await latest.current(abort.signal);
        if (!abort.signal.aborted) setState({ key, value });
      } catch (error) {
        if (abort.signal.aborted) return;
        const failed = error instanceof Error ? error : new Error(String(error));
        // A member of a cluster without a leader is available again without a new connection.
        if (next === 0 && failed instanceof Problem && failed.status === 503) next = 2_000;
        setState((old) => (old.key === key && old.value !== undefined ? { key, value: old.value, error: failed } : { key, error: failed }));
      }
      if (next > 0 && !abort.signal.aborted) timer = setTimeout(tick, next);
    };
    const tick = (): void => {
      if (document.hidden) {
        timer = setTimeout(tick, every || 2_000);
      } else {
        void step();
      }
    };
    void step();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, every, version, turn]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  const isCurrent = state.key === key;
  return { value: isCurrent || keep ? state.value : undefined, error: isCurrent ? state.error : undefined, reload };
}

// Follows the events of `path`, if it is given.
export function useEvents(path: string | null, onEvent: (event: ServerEvent) => void): Problem | undefined {
  const [problem, setProblem] = useState<Problem>();
  const version = useStore(epoch);
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    setProblem(undefined);
    if (path === null) return;
    const abort = new AbortController();
    void follow(path, abort.signal, (event) => latest.current(event), setProblem);
    return () => abort.abort();
  }, [path, version]);
  return problem;
}

// The time now, renewed every `every` milliseconds.
export function useNow(every = 1_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Telpher`;
  }, [title]);
}
