package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serve becomes the official nats-server: this very process runs its program, so that the
// processor time and the memory of the process are the server's and nothing else's. A child,
// attend, says READY and ends the server with the parent.
func serve(arguments []string) error {
	var listen string
	err := parse("serve", arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "", "")
	})
	if err != nil {
		return err
	}
	if err := checkAddress(listen); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	server := filepath.Join(filepath.Dir(own), "nats-server")
	if _, err := os.Stat(server); err != nil {
		return failed("build it with bench/peers/build.sh nats", "no nats-server beside this: %v", err)
	}
	dir, err := os.MkdirTemp("", "peer-nats-")
	if err != nil {
		return err
	}
	// The server holds the writing end; the child sees it close when the server is gone.
	var alive [2]int
	if err := syscall.Pipe(alive[:]); err != nil {
		return err
	}
	syscall.CloseOnExec(alive[0])
	child := exec.Command(own, "attend", "--server", strconv.Itoa(os.Getpid()), "--dir", dir)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.ExtraFiles = []*os.File{os.NewFile(uintptr(alive[0]), "alive")}
	syscall.CloseOnExec(alive[1])
	if err := child.Start(); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(alive[1]), syscall.F_SETFD, 0); errno != 0 {
		return errno
	}
	host, port, _ := net.SplitHostPort(listen)
	if port == "0" {
		port = "-1"
	}
	return syscall.Exec(server, []string{
		"nats-server", "--addr", host, "--port", port,
		"--ports_file_dir", dir, "--log", filepath.Join(dir, "log"),
	}, os.Environ())
}

// attend waits until the server answers, says so, and ends the server with the parent.
func attend(arguments []string) error {
	var server int
	var dir string
	err := parse("attend", arguments, func(flags *flag.FlagSet) {
		flags.IntVar(&server, "server", 0, "")
		flags.StringVar(&dir, "dir", "", "")
	})
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(3, "alive"))
		close(gone)
	}()
	address, err := waitForPorts(filepath.Join(dir, fmt.Sprintf("nats-server_%d.ports", server)), gone)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return failed("take port 0, or a port that is free", "%v\n%s", err, strings.TrimSpace(string(log)))
	}
	announce(address)
	go func() {
		untilParentGoes()
		_ = syscall.Kill(server, syscall.SIGTERM)
	}()
	<-gone
	return nil
}

// waitForPorts waits for the file in which nats-server lists where it listens.
func waitForPorts(path string, gone <-chan struct{}) (string, error) {
	late := time.After(10 * time.Second)
	for {
		var ports struct {
			Nats []string `json:"nats"`
		}
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &ports) == nil && len(ports.Nats) > 0 {
			return strings.TrimPrefix(ports.Nats[0], "nats://"), nil
		}
		select {
		case <-gone:
			return "", fmt.Errorf("nats-server ended before it listened")
		case <-late:
			return "", fmt.Errorf("nats-server does not listen after 10 s")
		case <-time.After(2 * time.Millisecond):
		}
	}
}
