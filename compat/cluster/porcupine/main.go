// Checks histories of registers for linearizability with porcupine.
//
//	porcupine FILE
//
// Each line of FILE is an operation in JSON. Ends with 1 if a history contradicts the promises, or if
// the checker could not decide within its time limit.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: porcupine FILE")
		os.Exit(2)
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	operations, err := decode(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
	hasFault := false
	total := counts{}
	for _, register := range byRegister(operations) {
		verdict := check(register)
		total.add(count(register))
		for _, fault := range verdict {
			fmt.Printf("FAULT: register %s: %s\n", register[0].Register, fault)
			hasFault = true
		}
	}
	fmt.Println(total)
	if hasFault {
		os.Exit(1)
	}
}

// Returns the operations of a file in JSON lines.
func decode(reader io.Reader) ([]operation, error) {
	lines := bufio.NewScanner(reader)
	// A scan lists all values of a register.
	lines.Buffer(nil, 64<<20)
	var operations []operation
	for lines.Scan() {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(operations)+1, err)
		}
		operations = append(operations, one)
	}
	return operations, lines.Err()
}

// Returns the operations of each register, in the order of the registers' first operations.
func byRegister(operations []operation) [][]operation {
	var registers [][]operation
	place := map[string]int{}
	for _, one := range operations {
		if _, isKnown := place[one.Register]; !isKnown {
			place[one.Register] = len(registers)
			registers = append(registers, nil)
		}
		at := place[one.Register]
		registers[at] = append(registers[at], one)
	}
	return registers
}
