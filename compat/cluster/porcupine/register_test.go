package main

import (
	"fmt"
	"strings"
	"testing"
)

// Builds a history, one operation after the other unless their times are set.
type script struct {
	history []operation
	now     int64
}

func text(value string) *string { return &value }

func (it *script) put(one operation) *operation {
	it.now += 10
	one.Register, one.Client = "r", len(it.history)
	if one.Call == 0 {
		one.Call, one.Return = it.now, it.now+5
	}
	it.history = append(it.history, one)
	return &it.history[len(it.history)-1]
}

func (it *script) append(value string, offset int) *operation {
	return it.put(operation{Kind: kindAppend, Outcome: outcomeDone, Value: text(value), Offset: offset})
}

func (it *script) unknown(value string) *operation {
	return it.put(operation{Kind: kindAppend, Outcome: outcomeUnknown, Value: text(value)})
}

func (it *script) fetch(value string, count int) *operation {
	return it.put(operation{Kind: kindFetch, Value: text(value), Offset: count})
}

func (it *script) confirmed(value string, offset int, before string) *operation {
	return it.put(operation{
		Kind: kindConfirmed, Outcome: outcomeDone, Value: text(value), Offset: offset, Before: text(before),
	})
}

func (it *script) scan(values ...string) []string {
	it.put(operation{Kind: kindScan, Values: values})
	return check(it.history)
}

func expectNone(t *testing.T, faults []string) {
	t.Helper()
	if faults != nil {
		t.Fatal(faults)
	}
}

func expectFault(t *testing.T, faults []string, word string) {
	t.Helper()
	if !strings.Contains(strings.Join(faults, "\n"), word) {
		t.Fatalf("no %q in %q", word, faults)
	}
}

func TestHistoryOfOneClientIsAccepted(t *testing.T) {
	var it script
	it.append("a", 0)
	it.fetch("a", 1)
	it.confirmed("b", 1, "a")
	expectNone(t, it.scan("a", "b"))
}

func TestLostWriteIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	it.append("b", 1)
	it.append("c", 1)
	expectFault(t, it.scan("a", "c"), "not linearizable")
}

func TestLostLastWriteIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	it.append("b", 1)
	expectFault(t, it.scan("a"), "not linearizable")
}

func TestStaleConfirmedReadIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	it.append("b", 1)
	it.confirmed("c", 2, "a")
	expectFault(t, it.scan("a", "b", "c"), "operation 2")
}

func TestStaleFetchIsCounted(t *testing.T) {
	var it script
	it.append("a", 0)
	it.append("b", 1)
	it.fetch("a", 1)
	expectNone(t, it.scan("a", "b"))
	if sum := count(it.history); sum.stale != 1 || sum.age != 5 || sum.linearizable != 0 {
		t.Fatalf("%+v", sum)
	}
}

func TestFetchOfWhatIsLostIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	it.unknown("b")
	it.fetch("b", 2)
	it.append("c", 1)
	expectFault(t, it.scan("a", "c"), "not linearizable")
}

func TestFetchOfTheFutureIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	it.fetch("b", 2)
	it.append("b", 1)
	expectFault(t, it.scan("a", "b"), "not linearizable")
}

func TestUnknownWriteMayTakeEffectLaterOrNever(t *testing.T) {
	var it script
	it.unknown("late")
	it.unknown("never")
	it.append("a", 0)
	it.append("b", 1)
	it.fetch("late", 3)
	expectNone(t, it.scan("a", "b", "late"))
}

func TestUnknownWriteTakesNoEffectBeforeItsCall(t *testing.T) {
	var it script
	it.append("b", 1)
	it.unknown("a")
	expectFault(t, it.scan("a", "b"), "not linearizable")
}

func TestRefusedWriteThatIsThereIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	it.put(operation{Kind: kindAppend, Outcome: outcomeRefused, Value: text("b")})
	expectFault(t, it.scan("a", "b"), "not linearizable")
}

func TestConditionsAreChecked(t *testing.T) {
	conditional := func(outcome string, expected, offset int) []string {
		var it script
		it.append("a", 0)
		it.put(operation{
			Kind: kindConditional, Outcome: outcome, Value: text("b"), Expected: expected, Offset: offset,
		})
		if outcome == outcomeDone {
			return it.scan("a", "b")
		}
		return it.scan("a")
	}
	expectNone(t, conditional(outcomeDone, 1, 1))
	expectNone(t, conditional(outcomeConflict, 0, 1))
	expectFault(t, conditional(outcomeDone, 0, 1), "not linearizable")
	expectFault(t, conditional(outcomeConflict, 1, 1), "not linearizable")
}

func TestDoubledWriteIsFound(t *testing.T) {
	var it script
	it.append("a", 0)
	expectFault(t, it.scan("a", "a"), "twice")
}

func TestConcurrentWritesAreOrderedByTheirOffsets(t *testing.T) {
	var it script
	for client := range 8 {
		one := it.append(fmt.Sprint(client), 7-client)
		one.Call, one.Return = 1, 100
	}
	it.now = 100
	expectNone(t, it.scan("7", "6", "5", "4", "3", "2", "1", "0"))
}

func TestManyUnknownWritesAreDecided(t *testing.T) {
	var it script
	var values []string
	for number := range 200 {
		it.unknown(fmt.Sprint("lost", number))
		it.unknown(fmt.Sprint("late", number))
		it.append(fmt.Sprint(number), number)
		values = append(values, fmt.Sprint(number))
	}
	for number := range 200 {
		values = append(values, fmt.Sprint("late", number))
	}
	expectNone(t, it.scan(values...))
}
