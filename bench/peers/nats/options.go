package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// options are those of every command; each command takes its own.
type options struct {
	address     string
	subject     string
	mode        string
	inFlight    int
	size        int
	window      time.Duration
	requests    uint64
	warmup      time.Duration
	connections int
	subscribers int
}

// seconds is a flag in seconds, fractions allowed, of at most an hour.
type seconds struct{ into *time.Duration }

func (s seconds) String() string { return "" }

func (s seconds) Set(text string) error {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value <= 3600) {
		return fmt.Errorf("not a number of seconds within 0 and 3600")
	}
	*s.into = time.Duration(value * 1e9)
	return nil
}

// parse takes the flags that `more` adds to --cpu, and runs on the processor that names.
func parse(command string, arguments []string, more func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	cpu := flags.Int("cpu", -1, "")
	more(flags)
	if err := flags.Parse(arguments); err != nil {
		return &failure{what: err.Error(), hint: usage, code: 2}
	}
	if flags.NArg() > 0 {
		return &failure{what: fmt.Sprintf("%q is not a flag", flags.Arg(0)), hint: usage, code: 2}
	}
	if *cpu >= 0 {
		return pin(*cpu)
	}
	return nil
}

// pin binds this process to one processor. Go sizes its scheduler when a program starts, so the
// program is started anew in the same process, bound and without the flag.
func pin(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return failed("give a number below that of the processors, as `nproc` prints it",
			"cannot run on processor %d: %v", cpu, err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(program, withoutCPU(os.Args), os.Environ())
}

func withoutCPU(arguments []string) []string {
	kept := slices.Clone(arguments)
	for i, argument := range kept {
		switch name := strings.TrimLeft(argument, "-"); {
		case name == argument:
		case name == "cpu":
			return slices.Delete(kept, i, i+2)
		case strings.HasPrefix(name, "cpu="):
			return slices.Delete(kept, i, i+1)
		}
	}
	return kept
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && net.ParseIP(host) != nil && port != "" {
		return nil
	}
	return &failure{
		what: fmt.Sprintf("%q is not an address that NATS has", address),
		hint: "give 127.0.0.1:PORT; NATS has no Unix sockets",
		code: 2,
	}
}

func parseLoad(arguments []string) (*options, error) {
	o := &options{warmup: 500 * time.Millisecond}
	err := parse("load", arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&o.address, "connect", "", "")
		flags.StringVar(&o.subject, "subject", "bench.echo", "")
		flags.StringVar(&o.mode, "mode", "", "")
		flags.IntVar(&o.inFlight, "in-flight", 1, "")
		flags.IntVar(&o.size, "size", 128, "")
		flags.Var(seconds{&o.window}, "seconds", "")
		flags.Uint64Var(&o.requests, "requests", 0, "")
		flags.Var(seconds{&o.warmup}, "warmup-seconds", "")
		flags.IntVar(&o.connections, "connections", 1, "")
		flags.IntVar(&o.subscribers, "subscribers", 0, "")
	})
	if err != nil {
		return nil, err
	}
	return o, o.check()
}

func (o *options) check() error {
	wrong := func(format string, values ...any) error {
		return &failure{what: fmt.Sprintf(format, values...), hint: usage, code: 2}
	}
	within := func(name string, value, min, max int) error {
		if value < min || value > max {
			return wrong("--%s %d is not within %d and %d", name, value, min, max)
		}
		return nil
	}
	for _, err := range []error{
		checkAddress(o.address),
		within("in-flight", o.inFlight, 1, 1<<20),
		within("size", o.size, 0, 1<<20),
		within("connections", o.connections, 1, 10_000),
		within("subscribers", o.subscribers, 0, 10_000),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case !slices.Contains([]string{"serial", "concurrent", "callback", "publish"}, o.mode):
		return wrong("--mode cannot be %q", o.mode)
	case o.mode == "serial" && o.inFlight > 1:
		return wrong("serial mode has one request in flight, not %d", o.inFlight)
	case o.subscribers > 0 && o.mode != "publish":
		return wrong("--subscribers goes with --mode publish")
	case (o.window > 0) == (o.requests > 0):
		return wrong("the window needs one end: --seconds or --requests, more than zero of it")
	}
	return nil
}

// bound is what ends a phase: a length of time or a number of requests.
type bound struct {
	window   time.Duration
	requests uint64
}

// share is what one connection may send.
func (b bound) share(index, connections int) uint64 {
	if b.window > 0 {
		return math.MaxUint64
	}
	share := b.requests / uint64(connections)
	if uint64(index) < b.requests%uint64(connections) {
		share++
	}
	return share
}

// patience is a time by which the whole run is over unless something hangs.
func (o *options) patience() time.Duration {
	if o.requests > 0 {
		return o.warmup + 630*time.Second
	}
	return o.warmup + o.window + 30*time.Second
}
