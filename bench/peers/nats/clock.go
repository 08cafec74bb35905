package main

import (
	"time"

	"golang.org/x/sys/unix"
)

var origin = time.Now()

// nowNs is the monotonic clock in nanoseconds since the program started.
func nowNs() uint64 { return uint64(time.Since(origin)) }

// cpuNs is the processor time that this process has used.
func cpuNs() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return uint64(t.Nano())
}
