package main

import (
	"math"
	"math/bits"
)

// histogram counts latencies in nanoseconds, in buckets never wider than 1/256 of their value.
//
// Values below 512 have a bucket each; above, every power of two is cut into 256. A percentile is
// the upper end of its bucket: never flattering, at most 0.4 % too high. Minimum, maximum and mean
// are exact.
type histogram struct {
	counts [buckets]uint64
	count  uint64
	sum    float64
	min    uint64
	max    uint64
}

const (
	cutBits = 8
	cuts    = 1 << cutBits
	// Values from 2^40 ns (18 minutes) on share the last bucket.
	valueMax = 1<<40 - 1
	buckets  = (40 - cutBits + 1) * cuts
)

func newHistogram() *histogram { return &histogram{min: math.MaxUint64} }

func indexOf(value uint64) uint64 {
	if value < 2*cuts {
		return value
	}
	shift := uint64(bits.Len64(value) - 1 - cutBits)
	return shift*cuts + value>>shift
}

// endOf is the largest value that falls into a bucket.
func endOf(index uint64) uint64 {
	if index < 2*cuts {
		return index
	}
	return (index%cuts+cuts+1)<<(index/cuts-1) - 1
}

func (h *histogram) record(value uint64) {
	h.counts[indexOf(min(value, valueMax))]++
	h.count++
	h.sum += float64(value)
	h.min = min(h.min, value)
	h.max = max(h.max, value)
}

func (h *histogram) merge(other *histogram) {
	for i, count := range other.counts {
		h.counts[i] += count
	}
	h.count += other.count
	h.sum += other.sum
	h.min = min(h.min, other.min)
	h.max = max(h.max, other.max)
}

func (h *histogram) quantile(fraction float64) uint64 {
	rank := max(uint64(math.Ceil(fraction*float64(h.count))), 1)
	seen := uint64(0)
	for index, count := range h.counts {
		if seen += count; seen >= rank {
			return min(endOf(uint64(index)), h.max)
		}
	}
	return h.max
}

// latency is the histogram as the contract prints it.
type latency struct {
	Count  uint64  `json:"count"`
	MeanNs float64 `json:"mean_ns"`
	MinNs  uint64  `json:"min_ns"`
	P50Ns  uint64  `json:"p50_ns"`
	P90Ns  uint64  `json:"p90_ns"`
	P99Ns  uint64  `json:"p99_ns"`
	P999Ns uint64  `json:"p999_ns"`
	MaxNs  uint64  `json:"max_ns"`
}

func (h *histogram) latency() latency {
	if h.count == 0 {
		return latency{}
	}
	return latency{
		h.count, h.sum / float64(h.count), h.min,
		h.quantile(0.5), h.quantile(0.9), h.quantile(0.99), h.quantile(0.999), h.max,
	}
}
