/* The contract of the benchmark programs: options, clocks, the end of a program, the report. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"

/* The longest silence that a load generator takes for slowness and not for a loss. */
#define SILENCE_MS 10000

typedef enum { MODE_SERIAL, MODE_CONCURRENT, MODE_CALLBACK } mode;

typedef struct {
    const char *address;       /* --listen or --connect: 127.0.0.1:PORT or unix:/path */
    const char *mode_word;
    mode mode;
    size_t in_flight;
    size_t size;
    uint64_t window_ns;        /* 0 if the number of requests ends the window */
    uint64_t requests;         /* 0 if time ends it */
    uint64_t warmup_ns;
    size_t connections;
} options;

typedef struct {
    histogram latency;
    uint64_t start_ns;
    uint64_t start_cpu_ns;
    uint64_t window_ns;
    uint64_t cpu_ns;
} tally;

/* Ends the program with `code` and a message, followed by what to try. */
_Noreturn void fail(int code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

options options_parse(int count, char **arguments, bool load);

uint64_t monotonic_ns(void);
uint64_t process_cpu_ns(void);

/* Ends the program with 0, having removed `path` if it is not null, with its stdin or on SIGTERM. */
void end_with_parent(const char *path);
/* Ends the program with 1 when it has not ended by itself in time. */
void limit_seconds(unsigned seconds);

void tally_start(tally *t);
void tally_end(tally *t, uint64_t now_ns);
void report_print(const char *program, const options *o, const tally *t, const char *notes);

#endif
