// A message of a conversation: its parts, with tool calls folded together with their results.

import { Badge, Body, Prose } from "../parts";
import { count, pretty, visible } from "../format";

export interface Message {
  seq: number;
  id: string;
  role: string;
  from?: string;
  status?: string;
  parts: Part[];
  tokens: number;
  estimated?: boolean;
  at: string;
  metadata: Record<string, unknown> | null;
}

export type Part = Record<string, unknown>;

export interface Tool {
  id: string;
  name: string;
  input: unknown;
  output: unknown;
  error: string | null;
  isCall: boolean;
  isResult: boolean;
}

const string = (value: unknown): string => (typeof value === "string" ? value : "");

function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

// Returns the tool call or the result that a part is, in the formats of the AI SDK, OpenAI and
// Anthropic, and in the one that the node stores for OpenAI's `tool_call_id`.
export function toolOf(part: Part): Tool | null {
  const type = string(part["type"]);
  const made = (id: unknown, name: unknown, change: Partial<Tool>): Tool => ({
    id: string(id),
    name: string(name) || "tool",
    input: undefined,
    output: undefined,
    error: null,
    isCall: false,
    isResult: false,
    ...change,
  });
  if (type === "tool-call") return made(part["toolCallId"], part["toolName"], { isCall: true, input: part["input"] ?? part["args"] });
  if (type === "tool-result" || type === "tool-error") {
    return made(part["toolCallId"], part["toolName"], { isResult: true, output: part["output"] ?? part["result"], error: type === "tool-error" ? string(part["error"]) || "failed" : null });
  }
  if (type === "dynamic-tool" || type.startsWith("tool-")) {
    const state = string(part["state"]);
    const error = state === "output-error" ? string(part["errorText"]) || "failed" : state === "output-denied" ? "denied" : null;
    return made(part["toolCallId"], type === "dynamic-tool" ? part["toolName"] : type.slice(5), {
      isCall: true,
      isResult: state.startsWith("output"),
      input: part["input"],
      output: part["output"],
      error,
    });
  }
  if (type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use") return made(part["id"], part["name"], { isCall: true, input: part["input"] });
  if (type.endsWith("tool_result")) return made(part["tool_use_id"] ?? part["tool_call_id"], "", { isResult: true, output: parsed(part["content"]), error: part["is_error"] === true ? "failed" : null });
  if (type === "function_call" || type === "custom_tool_call") return made(part["call_id"], part["name"], { isCall: true, input: parsed(part["arguments"] ?? part["input"]) });
  if (type.endsWith("_call_output")) return made(part["call_id"], "", { isResult: true, output: parsed(part["output"]) });
  const calls = part["tool_calls"];
  const first: unknown = Array.isArray(calls) ? calls[0] : type === "function" ? part : undefined;
  if (typeof first === "object" && first !== null) {
    const { id, function: called } = first as { id?: unknown; function?: { name?: unknown; arguments?: unknown } };
    return made(id, called?.name, { isCall: true, input: parsed(called?.arguments) });
  }
  if (part["tool_call_id"] !== undefined) return made(part["tool_call_id"], "", { isResult: true, output: parsed(part["content"]) });
  return null;
}

// The results of tool calls by the id of their call.
export function resultsOf(messages: Iterable<Message>): Map<string, Tool> {
  const found = new Map<string, Tool>();
  for (const message of messages) {
    for (const part of message.parts) {
      const tool = toolOf(part);
      if (tool?.isResult && !tool.isCall && tool.id !== "") found.set(tool.id, tool);
    }
  }
  return found;
}

// The ids of calls, whose results are shown with them.
export function callsOf(messages: Iterable<Message>): Set<string> {
  const found = new Set<string>();
  for (const message of messages) {
    for (const part of message.parts) {
      const tool = toolOf(part);
      if (tool?.isCall && tool.id !== "") found.add(tool.id);
    }
  }
  return found;
}

export function Parts({ parts, results, calls }: { parts: readonly Part[]; results: Map<string, Tool>; calls: Set<string> }) {
  return <>{parts.map((part, index) => <OnePart key={index} part={part} results={results} calls={calls} />)}</>;
}

function OnePart({ part, results, calls }: { part: Part; results: Map<string, Tool>; calls: Set<string> }) {
  const type = string(part["type"]);
  const tool = toolOf(part);
  if (tool) {
    if (tool.isResult && !tool.isCall && calls.has(tool.id)) {
      return <p class="note">Result of the tool call <code>{visible(tool.id)}</code>, shown with the call.</p>;
    }
    return <ToolCall tool={tool} result={tool.isResult ? tool : results.get(tool.id)} />;
  }
  const text = string(part["text"]);
  if (type === "text" || (type === "" && text !== "")) return <Prose text={text} />;
  if (type === "reasoning" || type === "thinking") {
    return (
      <details class="fold">
        <summary>Reasoning <span class="note clip">{visible(text.slice(0, 160))}</span></summary>
        <Prose text={text || string(part["thinking"])} />
      </details>
    );
  }
  if (type === "step-start") return <hr class="step" />;
  const name = string(part["filename"]) || string(part["mediaType"]) || string(part["title"]) || "";
  return (
    <details class="fold">
      <summary>{visible(type || "part")} <span class="note">{visible(name)}</span></summary>
      <Body text={JSON.stringify(part)} />
    </details>
  );
}

function ToolCall({ tool, result }: { tool: Tool; result: Tool | undefined }) {
  const error = result?.error ?? tool.error;
  const input = tool.input === undefined ? "" : typeof tool.input === "string" ? tool.input : JSON.stringify(tool.input);
  const tone = error ? "bad" : result ? "good" : "warn";
  return (
    <details class="fold tool">
      <summary>
        <span class="tool-name">{visible(tool.name)}</span>
        <Badge tone={tone}>{error ? "failed" : result ? "answered" : "no result"}</Badge>
        <span class="note clip">{visible(input.slice(0, 160))}</span>
      </summary>
      {input !== "" && (<><p class="label">Input</p><Body text={input} /></>)}
      {error && (<><p class="label">Error</p><Body text={error} /></>)}
      {result && result.output !== undefined && (<><p class="label">Result</p><Body text={typeof result.output === "string" ? result.output : pretty(result.output)} /></>)}
    </details>
  );
}

export function tokensOf(message: Message): string {
  return `${message.estimated ? "≈" : ""}${count(message.tokens)} ${message.tokens === 1 ? "token" : "tokens"}`;
}

// An answer that is being streamed, assembled from the chunks of the AI SDK.
export class Draft {
  readonly mid: string;
  readonly draft: number;
  readonly parts: Part[] = [];
  readonly #texts = new Map<string, Part>();
  readonly #tools = new Map<string, Part>();
  #next = 0;

  constructor(draft: number, mid: string) {
    this.draft = draft;
    this.mid = mid;
  }

  // Takes the chunk with an index; a chunk that was sent again after a reconnection changes nothing.
  push(index: number, chunk: Record<string, unknown>): void {
    if (index < this.#next) return;
    this.#next = index + 1;
    const type = string(chunk["type"]);
    const prose = /^(text|reasoning)-(start|delta|end)$/.exec(type);
    if (prose) {
      const [, kind = "text", step] = prose;
      const key = `${kind} ${string(chunk["id"])}`;
      let part = this.#texts.get(key);
      if (!part || step === "start") {
        part = { type: kind, text: "" };
        this.#texts.set(key, part);
        this.parts.push(part);
      }
      if (step === "delta") part["text"] = string(part["text"]) + string(chunk["delta"]);
      return;
    }
    if (!type.startsWith("tool-")) return;
    const id = string(chunk["toolCallId"]);
    let tool = this.#tools.get(id);
    if (!tool) {
      tool = { type: "dynamic-tool", toolCallId: id, toolName: string(chunk["toolName"]), state: "input-streaming", input: "" };
      this.#tools.set(id, tool);
      this.parts.push(tool);
    }
    if (type === "tool-input-delta") tool["input"] = string(tool["input"]) + string(chunk["inputTextDelta"]);
    if (type === "tool-input-available") Object.assign(tool, { state: "input-available", input: chunk["input"] });
    if (type === "tool-output-available") Object.assign(tool, { state: "output-available", output: chunk["output"] });
    if (type === "tool-output-error") Object.assign(tool, { state: "output-error", errorText: chunk["errorText"] });
  }
}
