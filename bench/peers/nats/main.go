// Command peer-nats is NATS core under the contract of the benchmark programs.
//
//	peer-nats serve     the official nats-server, under the contract of a server
//	peer-nats respond   answers every request with its own bytes
//	peer-nats subscribe counts what is published
//	peer-nats load      requests or publishes, and prints the result
package main

import (
	"errors"
	"fmt"
	"os"
)

const usage = `one of
  peer-nats serve --listen 127.0.0.1:PORT [--cpu N]
  peer-nats respond --connect ADDR [--subject S] [--cpu N]
  peer-nats subscribe --connect ADDR [--subject S] [--size B] [--count K] [--cpu N]
  peer-nats load --connect ADDR --mode serial|concurrent|callback|publish
      (--seconds S | --requests N) [--in-flight N] [--size B] [--warmup-seconds W]
      [--connections C] [--subscribers K] [--subject S] [--cpu N]`

func main() {
	if err := run(os.Args[1:]); err != nil {
		die(err)
	}
}

// die ends the program from wherever it is.
func die(err error) {
	var failed *failure
	if !errors.As(err, &failed) {
		failed = &failure{what: err.Error(), hint: "is nats-server alive, and fast enough?", code: 1}
	}
	fmt.Fprintf(os.Stderr, "peer-nats: %s\nhint: %s\n", failed.what, failed.hint)
	os.Exit(failed.code)
}

func run(arguments []string) error {
	command := ""
	if len(arguments) > 0 {
		command, arguments = arguments[0], arguments[1:]
	}
	switch command {
	case "serve":
		return serve(arguments)
	case "attend":
		return attend(arguments)
	case "respond":
		return respond(arguments)
	case "subscribe":
		return subscribe(arguments)
	case "load":
		return load(arguments)
	}
	return &failure{what: fmt.Sprintf("no such command: %q", command), hint: usage, code: 2}
}

// A failure says what went wrong and what to try; code 2 means a wrong command line.
type failure struct {
	what string
	hint string
	code int
}

func (f *failure) Error() string { return f.what }

func failed(hint, format string, values ...any) error {
	return &failure{what: fmt.Sprintf(format, values...), hint: hint, code: 1}
}
