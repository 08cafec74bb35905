#include "contract.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLAGS_HINT "every flag is `--name value`; README.md beside the program lists them"

void fail(int code, const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("peer-zmq: ", stderr);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nhint: %s\n", hint);
    va_end(arguments);
    _exit(code);
}

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max || *text == '-')
        fail(2, FLAGS_HINT, "%s cannot be \"%s\"", name, text);
    return value;
}

static uint64_t nanoseconds(const char *name, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0 && seconds <= 3600))
        fail(2, FLAGS_HINT, "%s cannot be \"%s\"", name, text);
    return (uint64_t)(seconds * 1e9);
}

static void pin(uint64_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail(1, "give a number below that of the processors, as `nproc` prints it",
             "cannot run on processor %llu: %s", (unsigned long long)cpu, strerror(errno));
}

static mode mode_parse(const char *word)
{
    if (strcmp(word, "serial") == 0)
        return MODE_SERIAL;
    if (strcmp(word, "concurrent") == 0)
        return MODE_CONCURRENT;
    if (strcmp(word, "callback") == 0)
        return MODE_CALLBACK;
    fail(2, "take serial, concurrent or callback", "there is no mode %s here", word);
}

options options_parse(int count, char **arguments, bool load)
{
    options o = {
        .in_flight = 1, .size = 128, .warmup_ns = 500000000, .connections = 1,
    };
    for (int i = 0; i < count; i += 2) {
        const char *name = arguments[i];
        if (i + 1 == count)
            fail(2, FLAGS_HINT, "%s has no value", name);
        const char *value = arguments[i + 1];
        if (strcmp(name, load ? "--connect" : "--listen") == 0)
            o.address = value;
        else if (strcmp(name, "--cpu") == 0)
            pin(number(name, value, 0, CPU_SETSIZE - 1));
        else if (load && strcmp(name, "--mode") == 0)
            o.mode = mode_parse(o.mode_word = value);
        else if (load && strcmp(name, "--in-flight") == 0)
            o.in_flight = number(name, value, 1, 1 << 20);
        else if (load && strcmp(name, "--size") == 0)
            o.size = number(name, value, 0, 16 << 20);
        else if (load && strcmp(name, "--seconds") == 0)
            o.window_ns = nanoseconds(name, value);
        else if (load && strcmp(name, "--requests") == 0)
            o.requests = number(name, value, 1, UINT64_MAX);
        else if (load && strcmp(name, "--warmup-seconds") == 0)
            o.warmup_ns = nanoseconds(name, value);
        else if (load && strcmp(name, "--connections") == 0)
            o.connections = number(name, value, 1, 10000);
        else
            fail(2, FLAGS_HINT, "%s is unknown here", name);
    }
    if (o.address == NULL)
        fail(2, FLAGS_HINT, "%s is missing", load ? "--connect" : "--listen");
    if (!load)
        return o;
    if (o.mode_word == NULL)
        fail(2, FLAGS_HINT, "--mode is missing");
    if (o.mode == MODE_SERIAL && o.in_flight > 1)
        fail(2, "use --mode concurrent, or leave out --in-flight",
             "serial mode has one request in flight, not %zu", o.in_flight);
    if ((o.window_ns > 0) == (o.requests > 0))
        fail(2, "give either --seconds or --requests, and more than zero of it",
             "the window has no end");
    return o;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t process_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static const char *path_to_remove;

static void end(int signal_or_zero)
{
    (void)signal_or_zero;
    if (path_to_remove != NULL)
        unlink(path_to_remove);
    _exit(0);
}

static void *wait_for_stdin(void *ignored)
{
    char buffer[4096];
    ssize_t size;
    do
        size = read(STDIN_FILENO, buffer, sizeof buffer);
    while (size > 0 || (size < 0 && errno == EINTR));
    end(0);
    return ignored;
}

void end_with_parent(const char *path)
{
    pthread_t thread;
    path_to_remove = path;
    signal(SIGTERM, end);
    signal(SIGINT, end);
    if (pthread_create(&thread, NULL, wait_for_stdin, NULL) != 0)
        fail(1, "try again", "cannot start a thread");
}

static void too_late(int ignored)
{
    static const char message[] =
        "peer-zmq: the run did not end in time\nhint: is the server still answering?\n";
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)ignored;
    (void)written;
    _exit(1);
}

void limit_seconds(unsigned seconds)
{
    signal(SIGALRM, too_late);
    alarm(seconds);
}

void tally_start(tally *t)
{
    histogram_clear(&t->latency);
    t->start_ns = monotonic_ns();
    t->start_cpu_ns = process_cpu_ns();
}

void tally_end(tally *t, uint64_t now_ns)
{
    t->window_ns = now_ns - t->start_ns;
    t->cpu_ns = process_cpu_ns() - t->start_cpu_ns;
}

void report_print(const char *program, const options *o, const tally *t, const char *notes)
{
    const histogram *h = &t->latency;
    if (h->count == 0)
        fail(1, "give it more time", "nothing completed within the window");
#define N(value) ((unsigned long long)(value))
    printf("{\"program\":\"%s\",\"mode\":\"%s\",\"in_flight\":%zu,\"size\":%zu,"
           "\"connections\":%zu,\"completed\":%llu,\"errors\":0,\"window_ns\":%llu,"
           "\"cpu_ns\":%llu,\"latency\":{\"count\":%llu,\"mean_ns\":%.1f,\"min_ns\":%llu,"
           "\"p50_ns\":%llu,\"p90_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu,\"max_ns\":%llu},"
           "\"received\":0,\"notes\":\"%s\"}\n",
           program, o->mode_word, o->in_flight, o->size, o->connections, N(h->count),
           N(t->window_ns), N(t->cpu_ns), N(h->count), histogram_mean(h), N(h->min),
           N(histogram_quantile(h, 0.5)), N(histogram_quantile(h, 0.9)),
           N(histogram_quantile(h, 0.99)), N(histogram_quantile(h, 0.999)), N(h->max), notes);
#undef N
    if (fflush(stdout) != 0)
        fail(1, "keep stdout open", "stdout: %s", strerror(errno));
}
