// Messages appended to conversations, each acknowledged when it is on disk: 30 users with 5 messages in
// flight each, and every acknowledged message read back at the end. README.md says how to run it.

import http from 'k6/http';
import exec from 'k6/execution';
import { check, sleep } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';
import { setTimeout } from 'k6/timers';
import { WebSocket } from 'k6/websockets';

const ADDRESS = __ENV.ADDRESS || '127.0.0.1:7401';
const DOOR = __ENV.DOOR || 'ws';
const VUS = Number(__ENV.VUS || 30);
const PIPELINE = Number(__ENV.PIPELINE || 5);
const RAMP_S = Number(__ENV.RAMP || 30);
const STEADY_S = Number(__ENV.DURATION || 60);
const SIZE = Number(__ENV.SIZE || 256);
// Another run against the same node has conversations of its own.
const RUN = __ENV.RUN || String(Date.now());
const SUMMARY = __ENV.SUMMARY;
// Milliseconds that an acknowledgement may take, for 95 and for 99 of 100. None unless told: where k6
// and the node share the processors, it is k6 that is waited for.
const LATENCY_LIMITS = [
  ['p(95)', __ENV.P95_MS],
  ['p(99)', __ENV.P99_MS],
].filter(([, limit]) => limit !== undefined);

const PAGE = 1000;
const READ_BACK_S = 120;

// Acknowledged in the steady window; the ramps are left out.
const acks = new Counter('acks_steady');
const ackMs = new Trend('ack_ms', true);
const readable = new Rate('acked_and_readable');
const gaps = new Counter('seq_gaps');
const failures = new Counter('append_failures');

export const options = {
  scenarios: {
    conversations: {
      executor: 'per-vu-iterations',
      vus: VUS,
      iterations: 1,
      maxDuration: `${RAMP_S + STEADY_S + READ_BACK_S}s`,
    },
  },
  thresholds: {
    acked_and_readable: ['rate==1'],
    seq_gaps: ['count==0'],
    append_failures: ['count==0'],
    acks_steady: ['count>0'],
    ack_ms: LATENCY_LIMITS.map(([quantile, limit]) => `${quantile}<${Number(limit)}`),
  },
  summaryTrendStats: ['avg', 'min', 'med', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
};

export default async function () {
  const startMs = exec.scenario.startTime;
  const vu = exec.vu.idInTest;
  const times = {
    openMs: startMs + RAMP_S * 1000,
    endMs: startMs + (RAMP_S + STEADY_S) * 1000,
  };
  // Users join one after the other over the ramp.
  sleep((RAMP_S * (vu - 1)) / VUS);
  const conversation = `k6-${RUN}-${vu}`;
  const acked = DOOR === 'http' ? await overHttp(conversation, times) : await overWebSocket(conversation, times);
  readBack(conversation, acked);
}

const TEXT = 'abcdefghijklmnopqrstuvwxyz '.repeat(Math.ceil(SIZE / 27)).slice(0, SIZE);

function message(id) {
  return { id, role: 'user', parts: [{ type: 'text', text: TEXT }] };
}

// Counts an acknowledgement, if it was asked for and given in the steady window.
function count(sentMs, times) {
  const nowMs = Date.now();
  if (sentMs >= times.openMs && nowMs <= times.endMs) {
    acks.add(1);
    ackMs.add(nowMs - sentMs);
  }
}

// One socket; each of its places sends the next message when its last one is acknowledged.
function overWebSocket(conversation, times) {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://${ADDRESS}/v1/ws`);
    const acked = new Map();
    const underWay = new Map();
    let number = 0;

    const send = () => {
      const id = `m-${++number}`;
      underWay.set(id, Date.now());
      socket.send(JSON.stringify({ op: 'append', ref: id, conv: conversation, messages: [message(id)] }));
    };
    const next = () => {
      if (Date.now() < times.endMs) {
        send();
      } else if (underWay.size === 0) {
        socket.close();
      }
    };

    socket.onopen = () => {
      for (let place = 0; place < PIPELINE; place++) send();
    };
    socket.onmessage = (event) => {
      const said = JSON.parse(event.data);
      const sentMs = underWay.get(said.ref);
      if (sentMs === undefined) return;
      underWay.delete(said.ref);
      if (said.op === 'ack') {
        count(sentMs, times);
        acked.set(said.ref, said.first_seq);
      } else {
        failures.add(1);
      }
      next();
    };
    socket.onerror = (event) => {
      failures.add(1);
      console.error(`websocket: ${event.error}`);
    };
    socket.onclose = () => resolve(acked);
  });
}

// As many requests under way as there are places.
async function overHttp(conversation, times) {
  const acked = new Map();
  const url = `http://${ADDRESS}/v1/conversations/${conversation}/messages`;
  const parameters = { headers: { 'Content-Type': 'application/json' }, tags: { name: 'append' } };
  let number = 0;

  const place = async () => {
    while (Date.now() < times.endMs) {
      const id = `m-${++number}`;
      const sentMs = Date.now();
      const answer = await http.asyncRequest('POST', url, JSON.stringify({ messages: [message(id)] }), parameters);
      if (answer.status === 201) {
        count(sentMs, times);
        acked.set(id, answer.json('first_seq'));
      } else {
        failures.add(1);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  await Promise.all(Array.from({ length: PIPELINE }, place));
  return acked;
}

// Every acknowledged message must be there, at the number it was acknowledged with, and no number be left out.
function readBack(conversation, acked) {
  const found = new Map();
  let last = 0;
  for (;;) {
    const url = `http://${ADDRESS}/v1/conversations/${conversation}/messages?after=${last}&limit=${PAGE}`;
    const page = http.get(url, { tags: { name: 'read' } });
    if (!check(page, { 'a page is read': (answer) => answer.status === 200 })) break;
    const messages = page.json('messages');
    for (const one of messages) {
      if (one.seq !== last + 1) gaps.add(1);
      last = one.seq;
      found.set(one.id, one.seq);
    }
    if (messages.length === 0) break;
  }
  for (const [id, seq] of acked) readable.add(found.get(id) === seq);
  if (acked.size === 0) readable.add(false);
}

export function handleSummary(data) {
  const value = (name, key) => (data.metrics[name] ? data.metrics[name].values[key] : 0);
  const failed = [];
  for (const [name, metric] of Object.entries(data.metrics)) {
    for (const [rule, { ok }] of Object.entries(metric.thresholds || {})) {
      if (!ok) failed.push(`${name}: ${rule}`);
    }
  }
  const summary = {
    door: DOOR,
    vus: VUS,
    pipeline: PIPELINE,
    size: SIZE,
    ramp_s: RAMP_S,
    steady_s: STEADY_S,
    acks: value('acks_steady', 'count'),
    acks_per_second: value('acks_steady', 'count') / STEADY_S,
    ack_ms: data.metrics.ack_ms ? data.metrics.ack_ms.values : {},
    acked_and_readable: value('acked_and_readable', 'rate'),
    read_back: value('acked_and_readable', 'passes'),
    seq_gaps: value('seq_gaps', 'count'),
    failures: value('append_failures', 'count'),
    thresholds_failed: failed,
  };
  const text = JSON.stringify(summary, null, 2) + '\n';
  return SUMMARY ? { stdout: text, [SUMMARY]: text } : { stdout: text };
}
