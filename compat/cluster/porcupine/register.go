package main

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Time limit for the check of one register.
const limit = 2 * time.Minute

// Time limit for the check of a part of a history that is not linearizable.
const partLimit = 10 * time.Second

// The kinds of operations.
const (
	// Appends a value. Every value is used once.
	kindAppend = "append"
	// Appends a value if it gets the offset Expected.
	kindConditional = "conditional"
	// Appends a value and reads the one before it: a linearizable read.
	kindConfirmed = "confirmed"
	// Reads the newest value. It may be older than the newest acknowledged one, at a node that does not
	// know yet that another leads; but everything that it shows is committed.
	kindFetch = "fetch"
	// Reads all values, after the end of all other operations.
	kindScan = "scan"
)

// The outcomes of appends.
const (
	outcomeDone = "done"
	// The append was not executed.
	outcomeRefused = "refused"
	// The condition of an append was not met.
	outcomeConflict = "conflict"
	// The append was executed or not, or will be executed later.
	outcomeUnknown = "unknown"
)

// An operation of a client. A register is a partition or a stream; its state is the list of its
// values.
type operation struct {
	Register string
	Client   int
	Kind     string
	Outcome  string
	// Nanoseconds of one clock.
	Call   int64
	Return int64
	// The appended value, or the one that was read; null if none was.
	Value *string
	// The value before the appended one, which a confirmed read has read; null if there was none.
	Before   *string
	Expected int
	// Number of values: at the end of a fetch or a conflict, and before the value of an append.
	Offset int
	// Values of a scan.
	Values []string
}

// The state of a register: the number of its values. The last operation of each history is a scan, and
// values are never changed or removed, so each state must be a prefix of the scanned values.
type state = int

// Returns the model of a register with these values at its end. `isStrict` demands that fetches are
// linearizable too.
func model(values []string, isStrict bool) porcupine.Model {
	place := make(map[string]int, len(values))
	for offset, value := range values {
		place[value] = offset
	}
	holds := func(offset int, value *string) bool {
		if offset < 0 || value == nil {
			return value == nil
		}
		return offset < len(values) && values[offset] == *value
	}
	isSeen := func(count state, seen int) bool {
		return seen == count || !isStrict && seen < count
	}
	step := func(before state, one operation) (bool, state) {
		switch one.Kind {
		case kindScan:
			return before == len(values), before
		case kindFetch:
			// A fetch at the end of the register reads no value.
			isRead := one.Value == nil || holds(one.Offset-1, one.Value)
			return isSeen(before, one.Offset) && isRead, before
		}
		switch one.Outcome {
		case outcomeDone:
			isMet := one.Kind != kindConditional || one.Expected == one.Offset
			isRead := one.Kind != kindConfirmed || holds(one.Offset-1, one.Before)
			is := before == one.Offset && holds(before, one.Value) && isMet && isRead
			return is, before + 1
		case outcomeConflict:
			_, isThere := place[*one.Value]
			return isSeen(before, one.Offset) && one.Offset != one.Expected && !isThere, before
		case outcomeRefused:
			_, isThere := place[*one.Value]
			return !isThere, before
		case outcomeUnknown:
			// It takes effect at any time after its call, or never. Which of the two is decided by the
			// scan, as no other operation appends its value. One without effect is put at the end, so that the
			// checker tries one place only.
			offset, isThere := place[*one.Value]
			if !isThere {
				return before == len(values), before
			}
			isMet := one.Kind != kindConditional || one.Expected == offset
			return before == offset && isMet, before + 1
		}
		return false, before
	}
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(before, input, _ any) (bool, any) {
			is, after := step(before.(state), input.(operation))
			return is, after
		},
	}
}

// Returns what contradicts the promises in the history of a register.
func check(history []operation) []string {
	var faults []string
	last := history[len(history)-1]
	if last.Kind != kindScan {
		return []string{"the last operation is no scan"}
	}
	seen := map[string]bool{}
	for _, value := range last.Values {
		if seen[value] {
			faults = append(faults, fmt.Sprintf("%q is there twice", value))
		}
		seen[value] = true
	}
	switch result := porcupine.CheckOperationsTimeout(model(last.Values, false), operations(history), limit); result {
	case porcupine.Ok:
	case porcupine.Illegal:
		faults = append(faults, "the history is not linearizable", describe(history))
	case porcupine.Unknown:
		faults = append(faults, fmt.Sprintf("not decided within %v", limit))
	}
	return faults
}

// Returns true if all operations are linearizable, fetches too.
func isLinearizable(history []operation) bool {
	scan := history[len(history)-1]
	result := porcupine.CheckOperationsTimeout(model(scan.Values, true), operations(history), limit)
	return result == porcupine.Ok
}

// Returns the operations in porcupine's form. One with an unknown outcome never returns.
func operations(history []operation) []porcupine.Operation {
	var all []porcupine.Operation
	for _, one := range history {
		end := one.Return
		if one.Outcome == outcomeUnknown {
			end = math.MaxInt64
		}
		all = append(all, porcupine.Operation{
			ClientId: one.Client,
			Input:    one,
			Call:     one.Call,
			Return:   end,
		})
	}
	return all
}

// Describes the shortest part of a history, from its beginning, that a bisection finds to be not
// linearizable.
func describe(history []operation) string {
	scan := history[len(history)-1]
	isIllegal := func(count int) bool {
		part := operations(history[:count])
		result := porcupine.CheckOperationsTimeout(model(scan.Values, false), part, partLimit)
		return result == porcupine.Illegal
	}
	count := sort.Search(len(history), func(count int) bool { return isIllegal(count) })
	if count == len(history) {
		return fmt.Sprintf("only the scan of %d values contradicts it", len(scan.Values))
	}
	return fmt.Sprintf("not linearizable from operation %d on: %s", count-1, summary(history[count-1]))
}

// Returns an operation for a message.
func summary(one operation) string {
	value := func(it *string) string {
		if it == nil {
			return "none"
		}
		return *it
	}
	return fmt.Sprintf("%s %s of client %d, value %s, offset %d, before %s, from %d to %d",
		one.Outcome, one.Kind, one.Client, value(one.Value), one.Offset, value(one.Before), one.Call, one.Return)
}

// Numbers of operations.
type counts struct {
	registers, linearizable, operations, unknown, effective, refused, stale int
	// How old the newest value was at most that a stale fetch did not show.
	age time.Duration
}

func (sum *counts) add(more counts) {
	sum.registers += more.registers
	sum.linearizable += more.linearizable
	sum.operations += more.operations
	sum.unknown += more.unknown
	sum.effective += more.effective
	sum.refused += more.refused
	sum.stale += more.stale
	sum.age = max(sum.age, more.age)
}

func (sum counts) String() string {
	return fmt.Sprintf("%d operations on %d registers: %d of unknown outcome (%d took effect), %d refused; "+
		"%d fetches did not show the newest acknowledged value, which was at most %d ms old; with fetches, "+
		"%d registers are linearizable",
		sum.operations, sum.registers, sum.unknown, sum.effective, sum.refused, sum.stale, sum.age.Milliseconds(),
		sum.linearizable)
}

// Counts the operations of a register.
func count(history []operation) counts {
	sum := counts{registers: 1, operations: len(history)}
	// The time at which each value was acknowledged.
	acknowledged := map[int]int64{}
	found := map[string]bool{}
	for _, one := range history {
		if one.Outcome == outcomeDone {
			acknowledged[one.Offset] = one.Return
		}
		for _, value := range one.Values {
			found[value] = true
		}
	}
	for _, one := range history {
		switch {
		case one.Outcome == outcomeUnknown:
			sum.unknown++
			if found[*one.Value] {
				sum.effective++
			}
		case one.Outcome == outcomeRefused || one.Outcome == outcomeConflict:
			sum.refused++
		case one.Kind == kindFetch:
			if since, isKnown := acknowledged[one.Offset]; isKnown && since < one.Call {
				sum.stale++
				sum.age = max(sum.age, time.Duration(one.Call-since))
			}
		}
	}
	if sum.stale == 0 && isLinearizable(history) {
		sum.linearizable = 1
	}
	return sum
}
