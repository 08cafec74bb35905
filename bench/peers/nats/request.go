package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// A shard keeps the latencies of some workers, so that thousands of them need no histogram each
// and hardly ever wait for one another.
type shard struct {
	sync.Mutex
	latency *histogram
	lastNs  uint64
	_       [64]byte
}

func (s *shard) record(sentNs, nowNs uint64) {
	s.Lock()
	s.latency.record(nowNs - sentNs)
	s.lastNs = max(s.lastNs, nowNs)
	s.Unlock()
}

// requestPhase awaits requests; as many goroutines as there are requests in flight take part.
func requestPhase(o *options, connections []*nats.Conn, b bound) (*tally, error) {
	shards := make([]shard, 4*runtime.GOMAXPROCS(0))
	for i := range shards {
		shards[i].latency = newHistogram()
	}
	payload := make([]byte, o.size)
	issued := make([]atomic.Uint64, len(connections))
	var workers sync.WaitGroup

	t := startTally()
	for worker := range len(connections) * o.inFlight {
		connection := worker % len(connections)
		shard := &shards[worker%len(shards)]
		admitted := func(nowNs uint64) bool {
			if b.window > 0 {
				return nowNs-t.startNs < uint64(b.window)
			}
			return issued[connection].Add(1) <= b.share(connection, len(connections))
		}
		workers.Go(func() {
			// A context that never ends costs nothing; the watchdog ends a run that hangs.
			nc, ctx := connections[connection], context.Background()
			for sentNs := nowNs(); admitted(sentNs); {
				reply, err := nc.RequestWithContext(ctx, o.subject, payload)
				if err != nil {
					die(requestError(err))
				}
				now := nowNs()
				if err := checkReply(reply, o.size); err != nil {
					die(err)
				}
				shard.record(sentNs, now)
				sentNs = now
			}
		})
	}
	workers.Wait()
	lastNs := uint64(0)
	for i := range shards {
		t.latency.merge(shards[i].latency)
		lastNs = max(lastNs, shards[i].lastNs)
	}
	t.completed = t.latency.count
	t.end(lastNs)
	return t, nil
}
