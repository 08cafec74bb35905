-- Takes for agents chosen at random: wrk -t1 -c50 -d10s -s take.lua http://HOST:PORT -- [AGENTS]

local agents, run

function init(args)
  agents = tonumber(args[1] or 10000)
  -- Another run against the same server has agents of its own.
  run = os.time()
  math.randomseed(run)
  wrk.method = "POST"
  wrk.path = "/api/request"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  local body = string.format('{"agentId":"wrk-%d-%08d","tokens":1}', run, math.random(0, agents - 1))
  return wrk.format(nil, nil, nil, body)
end

-- What is 400 or above is a refusal here: nothing else is asked that could fail.
function done(summary, latency)
  local seconds = summary.duration / 1e6
  local refused = summary.errors.status
  local broken = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("wrk: %.0f/s, %d allowed, %d refused, %d broken; ms: mean=%.3f p50=%.3f p95=%.3f p99=%.3f max=%.3f\n",
    summary.requests / seconds, summary.requests - refused, refused, broken, latency.mean / 1e3,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
