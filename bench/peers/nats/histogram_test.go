package main

import "testing"

func TestEveryBucketEndsWhereTheNextBegins(t *testing.T) {
	for index := uint64(0); index < buckets-1; index++ {
		if end := endOf(index); indexOf(end) != index || indexOf(end+1) != index+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d; the next value is in %d",
				index, end, indexOf(end), indexOf(end+1))
		}
	}
	if indexOf(valueMax) != buckets-1 {
		t.Fatalf("the largest value is in bucket %d of %d", indexOf(valueMax), buckets)
	}
}

func TestQuantilesAreNeverTooLowAndAtMostOnePartIn256TooHigh(t *testing.T) {
	h := newHistogram()
	for value := uint64(1); value <= 100_000; value++ {
		h.record(value * 10)
	}
	for fraction, exact := range map[float64]uint64{0.5: 500_000, 0.99: 990_000, 1: 1_000_000} {
		if found := h.quantile(fraction); found < exact || found > exact+exact/256 {
			t.Errorf("quantile %v is %d instead of %d", fraction, found, exact)
		}
	}
	if got := h.latency(); got.MinNs != 10 || got.MaxNs != 1_000_000 || got.MeanNs != 500_005 {
		t.Errorf("%+v", got)
	}
}

func TestTheFlagForTheProcessorIsTakenOut(t *testing.T) {
	for _, arguments := range [][]string{
		{"peer-nats", "load", "--cpu", "1", "--size", "2"},
		{"peer-nats", "load", "--cpu=1", "--size", "2"},
		{"peer-nats", "load", "--size", "2", "-cpu", "1"},
	} {
		kept := withoutCPU(arguments)
		if len(kept) != 4 || kept[1] != "load" || kept[2] != "--size" || kept[3] != "2" {
			t.Errorf("%v became %v", arguments, kept)
		}
	}
}
