'use strict';
// A rate limiter in front of agents: Express, ioredis, a token bucket for each agent in a Lua script.
//
//   server.js --listen 127.0.0.1:PORT --redis 127.0.0.1:PORT [--capacity 100] [--rate 10]
//
// Says `READY ADDRESS` when it can be asked, and ends with its standard input. The script goes to Redis
// whole with every take, the time is this process's, and `/api/test-rate-limit` counts in fixed windows
// for each client address: so is the design that this stands for. It logs nothing.

const fs = require('fs');
const path = require('path');
const express = require('express');
const Redis = require('ioredis');

const SCRIPT = fs.readFileSync(path.join(__dirname, 'bucket.lua'), 'utf8');
const WINDOW_LIMIT = 100;
const WINDOW_SECONDS = 60;

function options(args) {
  const found = { listen: '127.0.0.1:0', redis: '127.0.0.1:6379', capacity: '100', rate: '10' };
  for (let at = 0; at < args.length; at += 2) {
    const name = args[at].replace(/^--/, '');
    if (!(name in found) || args[at + 1] === undefined) {
      fail(2, `what is ${args[at]}?`, 'server.js --listen ADDR --redis ADDR [--capacity N] [--rate N]');
    }
    found[name] = args[at + 1];
  }
  const address = (text) => {
    const [host, port] = text.split(':');
    return { host, port: Number(port) };
  };
  return {
    listen: address(found.listen),
    redis: address(found.redis),
    capacity: Number(found.capacity),
    rate: Number(found.rate),
  };
}

function fail(code, what, hint) {
  process.stderr.write(`quota-express: ${what}\nhint: ${hint}\n`);
  process.exit(code);
}

const { listen, redis: store, capacity, rate } = options(process.argv.slice(2));
const redis = new Redis({ ...store, maxRetriesPerRequest: 1, enableOfflineQueue: true });
// A command that fails says so itself; without a listener the process would end.
redis.on('error', () => {});

const bucketOf = (agentId) => `ratelimit:agent:${agentId}`;
const unixSeconds = () => Math.floor(Date.now() / 1000);

function limits(response, limit, remaining, reset) {
  response.set('X-RateLimit-Limit', String(limit));
  response.set('X-RateLimit-Remaining', String(remaining));
  response.set('X-RateLimit-Reset', String(reset));
}

const badRequest = (response, message) => response.status(400).json({ error: 'Bad Request', message });

const app = express();
app.set('trust proxy', true);
app.use((request, response, next) => {
  response.set('Access-Control-Allow-Origin', '*');
  next();
});
app.use(express.json());

app.get('/', (request, response) => {
  response.json({
    name: 'IRL - Intelligent Rate Limiter',
    version: '0.1.0',
    endpoints: {
      health: '/health',
      testRedis: '/test-redis',
      testRateLimit: '/api/test-rate-limit',
      request: 'POST /api/request',
      quota: 'GET /api/quota/:agentId',
    },
  });
});

app.get('/health', async (request, response) => {
  const timestamp = new Date().toISOString();
  try {
    await redis.ping();
    response.json({ status: 'ok', timestamp, redis: 'connected' });
  } catch {
    response.status(503).json({ status: 'error', timestamp, redis: 'disconnected' });
  }
});

app.get('/test-redis', async (request, response, next) => {
  try {
    await redis.set('test:key', 'Hello from IRL!', 'EX', 60);
    const testValue = await redis.get('test:key');
    const redisVersion = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1];
    response.json({ success: true, message: 'Redis is working!', testValue, redisVersion });
  } catch (error) {
    next(error);
  }
});

app.post('/api/request', async (request, response, next) => {
  try {
    const { agentId, tokens = 1 } = request.body;
    if (!agentId || typeof agentId !== 'string') {
      return badRequest(response, 'agentId is required and must be a string');
    }
    const amount = Number(tokens);
    if (!(amount > 0)) return badRequest(response, 'tokens must be a positive number');
    const [allowed, remaining, retryMs] =
      await redis.eval(SCRIPT, 1, bucketOf(agentId), capacity, rate, amount, Date.now());
    if (allowed) {
      limits(response, capacity, remaining, unixSeconds());
      return response.json({
        success: true,
        message: 'Request allowed',
        tokensConsumed: amount,
        remaining,
        limit: capacity,
      });
    }
    const retryAfter = Math.ceil(retryMs / 1000);
    limits(response, capacity, remaining, unixSeconds() + retryAfter);
    response.set('Retry-After', String(retryAfter));
    return response.status(429).json({
      error: 'Too Many Requests',
      message: 'Rate limit exceeded. Please try again later.',
      retryAfter,
      remaining,
    });
  } catch (error) {
    return next(error);
  }
});

app.get('/api/quota/:agentId', async (request, response, next) => {
  try {
    const { agentId } = request.params;
    const full = { agentId, remaining: capacity, limit: capacity, rate };
    const stored = await redis.get(bucketOf(agentId));
    if (stored === null) {
      const message = 'No requests made yet. Full quota available.';
      return response.json({ ...full, status: 'new', message });
    }
    let bucket;
    try {
      bucket = JSON.parse(stored);
    } catch {
      return response.json({ ...full, status: 'reset' });
    }
    const [limit, storedRate, tokens, last] = bucket;
    const refilled = Math.min(limit, tokens + (Math.max(0, Date.now() - last) / 1000) * storedRate);
    return response.json({
      agentId,
      remaining: Math.floor(refilled),
      limit,
      rate: storedRate,
      status: 'active',
      lastActivity: new Date(last).toISOString(),
    });
  } catch (error) {
    return next(error);
  }
});

app.get('/api/test-rate-limit', async (request, response, next) => {
  try {
    const key = `ratelimit:window:${request.ip}`;
    const requestNumber = await redis.incr(key);
    if (requestNumber === 1) await redis.expire(key, WINDOW_SECONDS);
    const seconds = await redis.ttl(key);
    const remaining = Math.max(0, WINDOW_LIMIT - requestNumber);
    const resetTime = unixSeconds() + seconds;
    limits(response, WINDOW_LIMIT, remaining, resetTime);
    if (requestNumber > WINDOW_LIMIT) {
      return response.status(429).json({
        error: 'Too Many Requests',
        message: 'Rate limit exceeded. Please try again later.',
        retryAfter: WINDOW_SECONDS,
      });
    }
    const message = 'Request successful!';
    return response.json({ message, requestNumber, remaining, limit: WINDOW_LIMIT, resetTime });
  } catch (error) {
    return next(error);
  }
});

// Four parameters, or Express takes it for something else. Malformed JSON comes here too.
app.use((error, request, response, next) => {
  const message = 'An unexpected error occurred';
  response.status(500).json({ error: 'Internal Server Error', message });
});

redis.once('ready', () => {
  const server = app.listen(listen.port, listen.host, () => {
    process.stdout.write(`READY ${listen.host}:${server.address().port}\n`);
  });
  server.on('error', (error) => {
    fail(1, `${listen.host}:${listen.port}: ${error.message}`, 'take port 0');
  });
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
