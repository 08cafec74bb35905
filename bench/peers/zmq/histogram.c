#include "histogram.h"

#include <math.h>
#include <string.h>

static unsigned index_of(uint64_t value)
{
    if (value < 2 * HISTOGRAM_CUTS)
        return (unsigned)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
    return (unsigned)(shift * HISTOGRAM_CUTS + (value >> shift));
}

/* The largest value that falls into a bucket. */
static uint64_t end_of(uint64_t index)
{
    if (index < 2 * HISTOGRAM_CUTS)
        return index;
    unsigned shift = (unsigned)(index / HISTOGRAM_CUTS) - 1;
    return ((index % HISTOGRAM_CUTS + HISTOGRAM_CUTS + 1) << shift) - 1;
}

void histogram_clear(histogram *h)
{
    memset(h, 0, sizeof *h);
    h->min = UINT64_MAX;
}

void histogram_record(histogram *h, uint64_t value)
{
    h->counts[index_of(value < HISTOGRAM_VALUE_MAX ? value : HISTOGRAM_VALUE_MAX)]++;
    h->count++;
    h->sum += (double)value;
    if (value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
}

double histogram_mean(const histogram *h)
{
    return h->count == 0 ? 0 : h->sum / (double)h->count;
}

uint64_t histogram_quantile(const histogram *h, double fraction)
{
    uint64_t rank = (uint64_t)ceil(fraction * (double)h->count);
    uint64_t seen = 0;
    if (rank == 0)
        rank = 1;
    for (uint64_t index = 0; index < HISTOGRAM_BUCKETS; index++) {
        seen += h->counts[index];
        if (seen >= rank)
            return end_of(index) < h->max ? end_of(index) : h->max;
    }
    return h->max;
}
