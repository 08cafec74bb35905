package main

import (
	"encoding/json"
	"flag"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

// A subscriber counts what one connection receives.
type subscriber struct {
	nc       *nats.Conn
	sub      *nats.Subscription
	received uint64
	wrong    uint64
	firstNs  uint64
	lastNs   uint64
}

// newSubscriber subscribes, and returns when the server knows.
func newSubscriber(address, subject string, size int) (*subscriber, error) {
	s := &subscriber{}
	var err error
	if s.nc, err = open(address); err != nil {
		return nil, err
	}
	s.sub, err = unlimited(s.nc.Subscribe(subject, func(m *nats.Msg) {
		s.lastNs = nowNs()
		if s.received == 0 {
			s.firstNs = s.lastNs
		}
		s.received++
		if size >= 0 && len(m.Data) != size {
			s.wrong++
		}
	}))
	if err == nil {
		err = s.nc.Flush()
	}
	return s, err
}

// finish returns when everything that the server had for this subscriber has been counted: the
// answer to a ping comes after all messages, and a drained connection has handled them.
func (s *subscriber) finish() error {
	if err := s.nc.FlushTimeout(10 * time.Second); err != nil {
		return failed("is nats-server alive?", "a subscriber cannot catch up: %v", err)
	}
	closed := make(chan struct{})
	s.nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if err := s.nc.Drain(); err != nil {
		return err
	}
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		return failed("give it more time", "a subscriber cannot catch up")
	}
	if s.wrong > 0 {
		return failed("publish with the same --size", "%d messages have another length", s.wrong)
	}
	return nil
}

// subscription is the report of subscribe.
type subscription struct {
	Program     string   `json:"program"`
	Mode        string   `json:"mode"`
	Subscribers int      `json:"subscribers"`
	Received    uint64   `json:"received"`
	Each        []uint64 `json:"each"`
	WindowNs    uint64   `json:"window_ns"`
	Rate        float64  `json:"rate"`
	CPUNs       uint64   `json:"cpu_ns"`
	Notes       string   `json:"notes"`
}

// subscribe counts what is published until the parent goes, and prints it.
func subscribe(arguments []string) error {
	var address, subject string
	var count, size int
	err := parse("subscribe", arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&address, "connect", "", "")
		flags.StringVar(&subject, "subject", "bench.echo", "")
		flags.IntVar(&count, "count", 1, "")
		flags.IntVar(&size, "size", -1, "")
	})
	if err != nil {
		return err
	}
	var subscribers []*subscriber
	for range count {
		s, err := newSubscriber(address, subject, size)
		if err != nil {
			return err
		}
		subscribers = append(subscribers, s)
	}
	startCPUNs := cpuNs()
	announce(address)
	untilParentGoes()
	report := subscription{
		Program:     "peer-nats",
		Mode:        "subscribe",
		Subscribers: count,
		Notes:       "window: from the first message of any subscriber to the last of any; cpu: since READY",
	}
	var firstNs, lastNs uint64
	for _, s := range subscribers {
		if err := s.finish(); err != nil {
			return err
		}
		report.Received += s.received
		report.Each = append(report.Each, s.received)
		if s.received > 0 && (firstNs == 0 || s.firstNs < firstNs) {
			firstNs = s.firstNs
		}
		lastNs = max(lastNs, s.lastNs)
	}
	report.CPUNs = cpuNs() - startCPUNs
	if report.WindowNs = lastNs - firstNs; report.WindowNs > 0 {
		report.Rate = float64(report.Received) / float64(report.WindowNs) * 1e9
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
