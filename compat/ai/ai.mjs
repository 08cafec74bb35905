// Answers questions about the AI SDK: a line of JSON each on stdin, a line of JSON each on stdout.
import { createInterface } from 'node:readline';
import {
  convertToModelMessages,
  createUIMessageStream,
  createUIMessageStreamResponse,
  generateText,
  readUIMessageStream,
  validateUIMessages,
} from 'ai';
import { MockLanguageModelV4 } from 'ai/test';

const model = new MockLanguageModelV4({
  doGenerate: {
    content: [{ type: 'text', text: 'ok' }],
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: { inputTokens: {}, outputTokens: {} },
    warnings: [],
  },
});

const operations = { prefixes, window, stream };

/** The message that the SDK shows after each number of chunks; null for none. */
async function prefixes({ chunks }) {
  const messages = [];
  for (let count = 0; count <= chunks.length; count++) {
    let last = null;
    const stream = ReadableStream.from(structuredClone(chunks.slice(0, count)));
    for await (const message of readUIMessageStream({ stream, onError() {} })) last = message;
    messages.push(last && { parts: last.parts, metadata: last.metadata });
  }
  return messages;
}

/** Sends a window to a model. */
async function window({ messages }) {
  if (messages.length === 0) return true;
  await validateUIMessages({ messages });
  const prompt = await convertToModelMessages(messages);
  if (prompt.length > 0) await generateText({ model, messages: prompt, allowSystemInMessages: true });
  return true;
}

/** Streams answers with `fetch`, one after the other; what each is answered. */
async function stream({ url, count }) {
  const answers = [];
  for (let number = 0; number < count; number++) {
    const body = createUIMessageStreamResponse({
      stream: createUIMessageStream({
        execute({ writer }) {
          writer.write({ type: 'start', messageId: `a-${number}` });
          writer.write({ type: 'text-start', id: 't' });
          for (const delta of ['Hel', 'lo']) writer.write({ type: 'text-delta', id: 't', delta });
          writer.write({ type: 'text-end', id: 't' });
          writer.write({ type: 'finish', finishReason: 'stop' });
        },
      }),
    }).body;
    const headers = { 'content-type': 'text/event-stream' };
    try {
      const options = { method: 'POST', headers, body, duplex: 'half' };
      const response = await fetch(`${url}/a-${number}/stream`, options);
      answers.push(`${response.status} ${(await response.json()).status}`);
    } catch (error) {
      answers.push(`${error} ${error.cause}`);
    }
  }
  return answers;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...question } = JSON.parse(line);
  let answer;
  try {
    answer = { value: await operations[op](question) };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
