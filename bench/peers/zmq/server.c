/* The echo server: every message goes back as it came, the received frames themselves. */
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "peer.h"

static void *bound_router(const char *address)
{
    void *context = zmq_ctx_new();
    void *router = context == NULL ? NULL : zmq_socket(context, ZMQ_ROUTER);
    int unlimited = 0;
    if (router == NULL || zmq_setsockopt(router, ZMQ_SNDHWM, &unlimited, sizeof unlimited) != 0
        || zmq_setsockopt(router, ZMQ_RCVHWM, &unlimited, sizeof unlimited) != 0)
        fail(1, "raise `ulimit -n`", "no socket: %s", complaint());
    if (zmq_bind(router, endpoint_of(address)) != 0)
        fail(1, "take port 0, or a socket path that does not exist yet", "cannot listen at %s: %s",
             address, complaint());
    return router;
}

static void announce(void *router)
{
    char endpoint[512];
    size_t size = sizeof endpoint;
    if (zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0)
        fail(1, "try again", "no local address: %s", complaint());
    bool tcp = strncmp(endpoint, "tcp://", 6) == 0;
    printf("READY %s%s\n", tcp ? "" : "unix:", endpoint + 6);
    fflush(stdout);
}

void serve(const options *o)
{
    void *router = bound_router(o->address);
    end_with_parent(strncmp(o->address, "unix:", 5) == 0 ? o->address + 5 : NULL);
    announce(router);
    zmq_msg_t identity, body;
    zmq_msg_init(&identity);
    zmq_msg_init(&body);
    for (;;) {
        if (zmq_msg_recv(&identity, router, 0) < 0 || zmq_msg_recv(&body, router, 0) < 0
            || zmq_msg_send(&identity, router, ZMQ_SNDMORE) < 0
            || zmq_msg_send(&body, router, 0) < 0)
            fail(1, "try again", "cannot echo: %s", complaint());
    }
}
