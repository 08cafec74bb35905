package main

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// publishPhase publishes as fast as nats.go takes it. The window ends when the server has answered
// the flush of every connection, and so has handled all that was published.
func publishPhase(o *options, connections []*nats.Conn, b bound) (*tally, error) {
	var subscribers []*subscriber
	for range o.subscribers {
		s, err := newSubscriber(o.address, o.subject, o.size)
		if err != nil {
			return nil, err
		}
		subscribers = append(subscribers, s)
	}
	sent := make([]uint64, len(connections))
	var publishers sync.WaitGroup

	t := startTally()
	for i, nc := range connections {
		publishers.Go(func() {
			sent[i] = publish(nc, o, t.startNs, b, b.share(i, len(connections)))
		})
	}
	publishers.Wait()
	t.end(nowNs())
	for _, count := range sent {
		t.completed += count
	}
	for _, s := range subscribers {
		if err := s.finish(); err != nil {
			return nil, err
		}
		if s.received != t.completed {
			return nil, failed("publish less at once: NATS core drops what a slow subscriber cannot take",
				"a subscriber received %d of %d messages", s.received, t.completed)
		}
		t.received += s.received
		t.receivedWindowNs = max(t.receivedWindowNs, s.lastNs-t.startNs)
	}
	return t, nil
}

// publish returns how many messages it sent. The clock is read once in 64 messages.
func publish(nc *nats.Conn, o *options, startNs uint64, b bound, quota uint64) (sent uint64) {
	payload := make([]byte, o.size)
	for sent < quota && (b.window == 0 || nowNs()-startNs < uint64(b.window)) {
		for range min(64, quota-sent) {
			if err := nc.Publish(o.subject, payload); err != nil {
				die(requestError(err))
			}
			sent++
		}
	}
	if err := nc.Flush(); err != nil {
		die(requestError(err))
	}
	return sent
}
