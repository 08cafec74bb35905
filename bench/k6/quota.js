// The k6 test of the rate limiter's report: 50 users who each ask for the server's health, a take, the quota of
// the same agent and the limited test endpoint, and then think for half a second. README.md says how to run it.

import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Rate } from 'k6/metrics';

const ADDRESS = __ENV.ADDRESS || '127.0.0.1:7401';
const VUS = Number(__ENV.VUS || 50);
const DURATION_S = Number(__ENV.DURATION || 30);
const AGENTS = Number(__ENV.AGENTS || 10000);
const THINK_S = Number(__ENV.THINK || 0.5);
// Another run against the same server has agents of its own.
const RUN = __ENV.RUN || String(Date.now());
const SUMMARY = __ENV.SUMMARY;

const URL = `http://${ADDRESS}`;
const JSON_BODY = { headers: { 'Content-Type': 'application/json' } };

// A refused take is an answer: k6 counts it as a failed request, this does not.
const errors = new Rate('errors');
const takes = new Counter('takes_allowed');
const refused = new Counter('takes_refused');
const tests = new Counter('tests_allowed');
const testsRefused = new Counter('tests_refused');

export const options = {
  vus: VUS,
  duration: `${DURATION_S}s`,
  thresholds: {
    errors: ['rate<0.1'],
    checks: ['rate==1'],
    http_req_duration: ['p(95)<500'],
  },
  summaryTrendStats: ['avg', 'min', 'med', 'p(90)', 'p(95)', 'p(99)', 'max'],
};

const isJson = (answer) => {
  try {
    answer.json();
    return true;
  } catch {
    return false;
  }
};

const isAnswer = (answer) => answer.status === 200 || answer.status === 429;

export default function () {
  const agent = `k6-${RUN}-${Math.floor(Math.random() * AGENTS)}`;

  const health = http.get(`${URL}/health`, { tags: { name: 'health' } });
  check(health, { 'health check is 200': (answer) => answer.status === 200 });
  errors.add(health.status !== 200);

  const body = JSON.stringify({ agentId: agent, tokens: 1 });
  const take = http.post(`${URL}/api/request`, body, { ...JSON_BODY, tags: { name: 'request' } });
  check(take, { 'request status is 200 or 429': isAnswer, 'request has valid json': isJson });
  errors.add(!isAnswer(take));
  (take.status === 200 ? takes : refused).add(1);

  const quota = http.get(`${URL}/api/quota/${agent}`, { tags: { name: 'quota' } });
  check(quota, {
    'quota check is 200': (answer) => answer.status === 200,
    'quota response has remaining': (answer) => isJson(answer) && answer.json('remaining') !== undefined,
  });
  errors.add(quota.status !== 200);

  const test = http.get(`${URL}/api/test-rate-limit`, { tags: { name: 'test' } });
  check(test, { 'rate limit test returns 200 or 429': isAnswer });
  errors.add(!isAnswer(test));
  (test.status === 200 ? tests : testsRefused).add(1);

  sleep(THINK_S);
}

export function handleSummary(data) {
  const values = (name) => (data.metrics[name] ? data.metrics[name].values : {});
  const failed = [];
  for (const [name, metric] of Object.entries(data.metrics)) {
    for (const [rule, { ok }] of Object.entries(metric.thresholds || {})) {
      if (!ok) failed.push(`${name}: ${rule}`);
    }
  }
  const summary = {
    vus: VUS,
    duration_s: DURATION_S,
    agents: AGENTS,
    think_s: THINK_S,
    requests: values('http_reqs').count,
    requests_per_second: values('http_reqs').rate,
    iterations: values('iterations').count,
    duration_ms: values('http_req_duration'),
    error_rate: values('errors').rate,
    checks: values('checks').passes,
    checks_failed: values('checks').fails,
    takes_allowed: values('takes_allowed').count || 0,
    takes_refused: values('takes_refused').count || 0,
    tests_allowed: values('tests_allowed').count || 0,
    tests_refused: values('tests_refused').count || 0,
    thresholds_failed: failed,
  };
  const text = JSON.stringify(summary, null, 2) + '\n';
  return SUMMARY ? { stdout: text, [SUMMARY]: text } : { stdout: text };
}
