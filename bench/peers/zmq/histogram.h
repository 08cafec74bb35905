/* Latencies in nanoseconds, in buckets that are never wider than 1/256 of their value.
 *
 * Values below 512 have a bucket each; above, every power of two is cut into 256. A percentile is
 * the upper end of its bucket: never flattering, at most 0.4 % too high. Minimum, maximum and mean
 * are exact. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 8
#define HISTOGRAM_CUTS (1ull << HISTOGRAM_BITS)
/* Values from 2^40 ns (18 minutes) on share the last bucket. */
#define HISTOGRAM_VALUE_MAX ((1ull << 40) - 1)
#define HISTOGRAM_BUCKETS ((40 - HISTOGRAM_BITS + 1) * HISTOGRAM_CUTS)

typedef struct {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t min;
    uint64_t max;
    double sum;
} histogram;

void histogram_clear(histogram *h);
void histogram_record(histogram *h, uint64_t value);
double histogram_mean(const histogram *h);
uint64_t histogram_quantile(const histogram *h, double fraction);

#endif
