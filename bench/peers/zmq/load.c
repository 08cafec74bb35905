/* The load: windows of requests over DEALER sockets.
 *
 * A connection's replies come in the order of its requests, so the times of its requests are a
 * ring. A request that has room for it carries its number, and the reply has to carry it back. */
#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "peer.h"

typedef struct {
    void *dealer;
    uint64_t *sent_ns;         /* A ring of as many times as there may be requests in flight. */
    uint64_t next;             /* The number of the next request. */
    uint64_t waiting;
} connection;

typedef struct {
    const options *options;
    connection *connections;
    zmq_pollitem_t *items;
    unsigned char *body;
    uint64_t waiting;          /* Requests in flight on all connections. */
    uint64_t end_ns;
    uint64_t quota;
    tally *tally;
} run;

static _Noreturn void lost(const run *r, const char *why)
{
    fail(1, "does a server of the same program listen there, and is it alive?",
         "%s; %llu replies are missing", why, (unsigned long long)r->waiting);
}

static void issue(run *r, connection *c, uint64_t now_ns)
{
    size_t size = r->options->size;
    zmq_msg_t message;
    if (now_ns >= r->end_ns || r->quota == 0)
        return;
    r->quota--;
    if (zmq_msg_init_size(&message, size) != 0)
        lost(r, "out of memory");
    if (size >= sizeof c->next)
        memcpy(r->body, &c->next, sizeof c->next);
    memcpy(zmq_msg_data(&message), r->body, size);
    if (zmq_msg_send(&message, c->dealer, 0) < 0)
        lost(r, complaint());
    c->sent_ns[c->next++ % r->options->in_flight] = now_ns;
    c->waiting++;
    r->waiting++;
}

/* Takes one reply off a connection, checks it and counts it. False if there is none yet. */
static bool take(run *r, connection *c, int flags, uint64_t *now_ns)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, c->dealer, flags) < 0) {
        if (zmq_errno() != EAGAIN)
            lost(r, complaint());
        if ((flags & ZMQ_DONTWAIT) == 0)
            lost(r, "nothing came for too long");
        return false;
    }
    uint64_t number = c->next - c->waiting;
    if (c->waiting == 0)
        lost(r, "a reply came that nothing asked for");
    if (zmq_msg_size(&message) != r->options->size)
        lost(r, "a reply has another length than its request");
    if (r->options->size >= sizeof number
        && memcmp(zmq_msg_data(&message), &number, sizeof number) != 0)
        lost(r, "a reply answers another request");
    zmq_msg_close(&message);
    *now_ns = monotonic_ns();
    histogram_record(&r->tally->latency,
                     *now_ns - c->sent_ns[number % r->options->in_flight]);
    c->waiting--;
    r->waiting--;
    return true;
}

/* One connection, awaited: a blocking receive for every reply. */
static uint64_t await_each(run *r)
{
    uint64_t now_ns = r->tally->start_ns;
    while (r->waiting > 0) {
        take(r, &r->connections[0], 0, &now_ns);
        issue(r, &r->connections[0], now_ns);
    }
    return now_ns;
}

/* One connection, driven by completions: sleeps for one reply, drains what else has come without
 * waiting, and answers all of it with as many requests. */
static uint64_t drain_one(run *r)
{
    uint64_t now_ns = r->tally->start_ns;
    while (r->waiting > 0) {
        uint64_t taken = 1;
        take(r, &r->connections[0], 0, &now_ns);
        while (r->waiting > 0 && take(r, &r->connections[0], ZMQ_DONTWAIT, &now_ns))
            taken++;
        while (taken-- > 0)
            issue(r, &r->connections[0], now_ns);
    }
    return now_ns;
}

/* Several connections, driven by readiness. */
static uint64_t drain_all(run *r)
{
    uint64_t now_ns = r->tally->start_ns;
    while (r->waiting > 0) {
        int ready = zmq_poll(r->items, (int)r->options->connections, SILENCE_MS);
        if (ready < 0 && zmq_errno() != EINTR)
            lost(r, complaint());
        if (ready == 0)
            lost(r, "nothing came for too long");
        for (size_t i = 0; i < r->options->connections; i++) {
            if ((r->items[i].revents & ZMQ_POLLIN) == 0)
                continue;
            while (r->connections[i].waiting > 0
                   && take(r, &r->connections[i], ZMQ_DONTWAIT, &now_ns))
                issue(r, &r->connections[i], now_ns);
        }
    }
    return now_ns;
}

/* Fills the windows, keeps them full until the bound, and waits for what is in flight. */
static void phase(run *r, uint64_t window_ns, uint64_t requests)
{
    const options *o = r->options;
    r->quota = requests > 0 ? requests : UINT64_MAX;
    tally_start(r->tally);
    r->end_ns = window_ns > 0 ? r->tally->start_ns + window_ns : UINT64_MAX;
    for (size_t i = 0; i < o->connections; i++)
        for (size_t n = 0; n < o->in_flight; n++)
            issue(r, &r->connections[i], monotonic_ns());
    uint64_t now_ns = o->connections > 1           ? drain_all(r)
                      : o->mode == MODE_CALLBACK ? drain_one(r)
                                                 : await_each(r);
    tally_end(r->tally, now_ns);
}

/* ZeroMQ connects in the background and retries for ever; a plain socket knows at once. */
static void check_address(const char *address)
{
    union {
        struct sockaddr any;
        struct sockaddr_in tcp;
        struct sockaddr_un unix_path;
    } a;
    memset(&a, 0, sizeof a);
    socklen_t size;
    if (strncmp(address, "unix:", 5) == 0) {
        a.unix_path.sun_family = AF_UNIX;
        strncpy(a.unix_path.sun_path, address + 5, sizeof a.unix_path.sun_path - 1);
        size = sizeof a.unix_path;
    } else {
        const char *colon = strrchr(address, ':');
        char host[64] = "";
        a.tcp.sin_family = AF_INET;
        if (colon != NULL && (size_t)(colon - address) < sizeof host)
            memcpy(host, address, (size_t)(colon - address));
        if (inet_pton(AF_INET, host, &a.tcp.sin_addr) != 1)
            fail(2, "give 127.0.0.1:PORT or unix:/path", "%s is no address", address);
        a.tcp.sin_port = htons((uint16_t)atoi(colon + 1));
        size = sizeof a.tcp;
    }
    int fd = socket(a.any.sa_family, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, &a.any, size) != 0)
        fail(1, "start the server first and use the address it prints after READY",
             "cannot connect to %s: %s", address, strerror(errno));
    close(fd);
}

static void *connected_dealer(void *context, const char *endpoint)
{
    int unlimited = 0, silence_ms = SILENCE_MS, linger_ms = 0;
    void *dealer = zmq_socket(context, ZMQ_DEALER);
    if (dealer == NULL || zmq_setsockopt(dealer, ZMQ_SNDHWM, &unlimited, sizeof unlimited) != 0
        || zmq_setsockopt(dealer, ZMQ_RCVHWM, &unlimited, sizeof unlimited) != 0
        || zmq_setsockopt(dealer, ZMQ_RCVTIMEO, &silence_ms, sizeof silence_ms) != 0
        || zmq_setsockopt(dealer, ZMQ_LINGER, &linger_ms, sizeof linger_ms) != 0
        || zmq_connect(dealer, endpoint) != 0)
        fail(1, "raise `ulimit -n`", "cannot connect to %s: %s", endpoint, complaint());
    return dealer;
}

void load(const options *o)
{
    static tally t;
    run r = {.options = o, .tally = &t};
    check_address(o->address);
    uint64_t window_s = (o->warmup_ns + o->window_ns) / 1000000000;
    limit_seconds((unsigned)window_s + (o->requests > 0 ? 630 : 30));

    void *context = zmq_ctx_new();
    char *endpoint = endpoint_of(o->address);
    r.connections = calloc(o->connections, sizeof *r.connections);
    r.items = calloc(o->connections, sizeof *r.items);
    r.body = malloc(o->size + 1);
    if (context == NULL || r.connections == NULL || r.items == NULL || r.body == NULL
        || zmq_ctx_set(context, ZMQ_MAX_SOCKETS, (int)o->connections + 16) != 0)
        fail(1, "free some memory", "out of memory");
    memset(r.body, 7, o->size + 1);
    for (size_t i = 0; i < o->connections; i++) {
        connection *c = &r.connections[i];
        c->dealer = connected_dealer(context, endpoint);
        c->sent_ns = calloc(o->in_flight, sizeof *c->sent_ns);
        if (c->sent_ns == NULL)
            fail(1, "free some memory", "out of memory");
        r.items[i] = (zmq_pollitem_t){.socket = c->dealer, .events = ZMQ_POLLIN};
    }
    if (o->warmup_ns > 0)
        phase(&r, o->warmup_ns, 0);
    phase(&r, o->window_ns, o->requests);
    report_print("peer-zmq", o, &t,
                 "libzmq ROUTER and DEALER, one I/O thread on each side, no high-water mark, its own "
                 "TCP_NODELAY; serial and concurrent: a blocking receive per reply; callback: a "
                 "blocking receive, then receives without waiting until there is none, then as many "
                 "sends; several connections: zmq_poll instead of the blocking receive");
}
