package main

import (
	"flag"
	"fmt"

	"github.com/nats-io/nats.go"
)

// respond answers every request with its own bytes.
func respond(arguments []string) error {
	var address, subject string
	err := parse("respond", arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&address, "connect", "", "")
		flags.StringVar(&subject, "subject", "bench.echo", "")
	})
	if err != nil {
		return err
	}
	nc, err := open(address)
	if err != nil {
		return err
	}
	_, err = unlimited(nc.Subscribe(subject, func(m *nats.Msg) {
		if err := nc.Publish(m.Reply, m.Data); err != nil {
			die(fmt.Errorf("cannot answer: %w", err))
		}
	}))
	if err != nil {
		return err
	}
	// The server has taken the subscription when it answers this.
	if err := nc.Flush(); err != nil {
		return err
	}
	announce(address)
	untilParentGoes()
	return nil
}
