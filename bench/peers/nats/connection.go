package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

// open connects once and for ever: a connection that is lost, and any error that NATS tells only
// on the side, ends the program.
func open(address string) (*nats.Conn, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	nc, err := nats.Connect("nats://"+address,
		nats.NoReconnect(),
		nats.Timeout(5*time.Second),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() && err != nil {
				die(failed("is nats-server alive?", "the connection is lost: %v", err))
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			die(failed("see the documentation of nats.go", "%v", err))
		}),
	)
	if err != nil {
		return nil, failed("start nats-server first and use the address it listens at",
			"cannot connect to %s: %v", address, err)
	}
	return nc, nil
}

// unlimited takes the bound off what a subscription may hold back.
func unlimited(s *nats.Subscription, err error) (*nats.Subscription, error) {
	if err == nil {
		err = s.SetPendingLimits(-1, -1)
	}
	return s, err
}

// announce tells the parent that this program is ready.
func announce(address string) {
	fmt.Printf("READY %s\n", address)
}

// untilParentGoes returns when stdin reaches its end or the program is told to stop.
func untilParentGoes() {
	ended := make(chan struct{}, 1)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended <- struct{}{}
	}()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-ended:
	case <-stop:
	}
}
