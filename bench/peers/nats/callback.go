package main

import (
	"encoding/binary"
	"sync"

	"github.com/nats-io/nats.go"
)

// A window keeps the requests of one connection in flight. NATS core keeps the order of what one
// publisher sends on one subject, and the responder has one subscription, so the replies come in
// the order of the requests; a request that has room carries its number and the reply must too.
type window struct {
	sync.Mutex
	nc      *nats.Conn
	subject string
	inbox   string
	payload []byte
	sentNs  []uint64
	next    uint64
	waiting uint64
	quota   uint64
	endNs   uint64
	lastNs  uint64
	latency *histogram
	done    chan struct{}
}

func (w *window) issue(nowNs uint64) {
	if nowNs >= w.endNs || w.quota == 0 {
		return
	}
	w.quota--
	if len(w.payload) >= 8 {
		binary.LittleEndian.PutUint64(w.payload, w.next)
	}
	if err := w.nc.PublishRequest(w.subject, w.inbox, w.payload); err != nil {
		die(requestError(err))
	}
	w.sentNs[w.next%uint64(len(w.sentNs))] = nowNs
	w.next++
	w.waiting++
}

// taken handles a reply and sends the next request.
func (w *window) taken(reply *nats.Msg) {
	now := nowNs()
	if err := checkReply(reply, len(w.payload)); err != nil {
		die(err)
	}
	w.Lock()
	defer w.Unlock()
	number := w.next - w.waiting
	if w.waiting == 0 || len(reply.Data) >= 8 && binary.LittleEndian.Uint64(reply.Data) != number {
		die(failed("does exactly one peer-nats respond?", "a reply answers another request"))
	}
	w.latency.record(now - w.sentNs[number%uint64(len(w.sentNs))])
	w.waiting--
	w.lastNs = now
	w.issue(now)
	if w.waiting == 0 {
		close(w.done)
	}
}

// callbackPhase sends from the callback of one inbox subscription per connection.
func callbackPhase(o *options, connections []*nats.Conn, b bound) (*tally, error) {
	var windows []*window
	for i, nc := range connections {
		w := &window{
			nc: nc, subject: o.subject, inbox: nc.NewInbox(),
			payload: make([]byte, o.size), sentNs: make([]uint64, o.inFlight),
			quota: b.share(i, len(connections)), latency: newHistogram(),
			done: make(chan struct{}),
		}
		sub, err := unlimited(nc.Subscribe(w.inbox, w.taken))
		if err != nil {
			return nil, err
		}
		defer func() { _ = sub.Unsubscribe() }()
		if err := nc.Flush(); err != nil {
			return nil, err
		}
		if w.quota > 0 {
			windows = append(windows, w)
		}
	}

	t := startTally()
	for _, w := range windows {
		w.Lock()
		w.endNs = t.startNs + uint64(b.window)
		if b.window == 0 {
			w.endNs = ^uint64(0)
		}
		for range o.inFlight {
			w.issue(nowNs())
		}
		w.Unlock()
	}
	lastNs := t.startNs
	for _, w := range windows {
		<-w.done
		t.latency.merge(w.latency)
		lastNs = max(lastNs, w.lastNs)
	}
	t.completed = t.latency.count
	t.end(lastNs)
	return t, nil
}
