package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

// report is what the contract prints.
type report struct {
	Program          string  `json:"program"`
	Mode             string  `json:"mode"`
	InFlight         int     `json:"in_flight"`
	Size             int     `json:"size"`
	Connections      int     `json:"connections"`
	Completed        uint64  `json:"completed"`
	Errors           uint64  `json:"errors"`
	WindowNs         uint64  `json:"window_ns"`
	CPUNs            uint64  `json:"cpu_ns"`
	Latency          latency `json:"latency"`
	Received         uint64  `json:"received"`
	ReceivedWindowNs uint64  `json:"received_window_ns"`
	Notes            string  `json:"notes"`
}

// A tally is what a phase has shown. The span ends with the last reply.
type tally struct {
	latency          *histogram
	completed        uint64
	received         uint64
	startNs          uint64
	startCPUNs       uint64
	endNs            uint64
	endCPUNs         uint64
	receivedWindowNs uint64
}

func startTally() *tally {
	return &tally{latency: newHistogram(), startNs: nowNs(), startCPUNs: cpuNs()}
}

// end closes the span at the last reply.
func (t *tally) end(atNs uint64) {
	t.endNs, t.endCPUNs = atNs, cpuNs()
}

var notes = map[string]string{
	"serial":     "RequestWithContext, one after the other",
	"concurrent": "RequestWithContext in a goroutine per request in flight, the shared inbox of nats.go",
	"callback":   "PublishRequest with one inbox subscription whose callback sends the next request",
	"publish":    "Publish as fast as possible, then Flush; the window ends with the flush",
}

// load requests or publishes, and prints the result.
func load(arguments []string) error {
	o, err := parseLoad(arguments)
	if err != nil {
		return err
	}
	time.AfterFunc(o.patience(), func() {
		die(failed("is nats-server still answering?", "the run did not end within %v", o.patience()))
	})
	var connections []*nats.Conn
	for range o.connections {
		nc, err := open(o.address)
		if err != nil {
			return err
		}
		connections = append(connections, nc)
	}
	phase := requestPhase
	switch o.mode {
	case "callback":
		phase = callbackPhase
	case "publish":
		phase = publishPhase
	}
	if o.warmup > 0 {
		// What is published to warm up is not for the subscribers who count.
		warmup := *o
		if o.mode == "publish" {
			warmup.subject += ".warmup"
		}
		if _, err := phase(&warmup, connections, bound{window: o.warmup}); err != nil {
			return err
		}
	}
	t, err := phase(o, connections, bound{window: o.window, requests: o.requests})
	if err != nil {
		return err
	}
	if t.completed == 0 {
		return failed("give it more time", "nothing completed within the window")
	}
	return json.NewEncoder(os.Stdout).Encode(report{
		Program: "peer-nats", Mode: o.mode, InFlight: o.inFlight, Size: o.size,
		Connections: o.connections, Completed: t.completed,
		WindowNs: t.endNs - t.startNs, CPUNs: t.endCPUNs - t.startCPUNs,
		Latency: t.latency.latency(), Received: t.received, ReceivedWindowNs: t.receivedWindowNs,
		Notes: "nats.go, NATS core, TCP_NODELAY as Go sets it; " + notes[o.mode],
	})
}

func checkReply(m *nats.Msg, size int) error {
	if m.Header.Get("Status") == "503" {
		return failed("start `peer-nats respond` first", "nobody answers on %s", m.Subject)
	}
	if len(m.Data) != size {
		return failed("does peer-nats respond?", "a reply has %d bytes instead of %d", len(m.Data), size)
	}
	return nil
}

func requestError(err error) error {
	if err == nats.ErrNoResponders {
		return failed("start `peer-nats respond` first", "nobody answers: %v", err)
	}
	return fmt.Errorf("a request failed: %w", err)
}
