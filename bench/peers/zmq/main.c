/* peer-zmq: an echo over libzmq, ROUTER on one side and DEALER on the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "peer.h"

char *endpoint_of(const char *address)
{
    char *endpoint = NULL;
    int size = strncmp(address, "unix:", 5) == 0 ? asprintf(&endpoint, "ipc://%s", address + 5)
                                                  : asprintf(&endpoint, "tcp://%s", address);
    if (size < 0)
        fail(1, "free some memory", "out of memory");
    return endpoint;
}

const char *complaint(void)
{
    return zmq_strerror(zmq_errno());
}

int main(int count, char **arguments)
{
    const char *command = count > 1 ? arguments[1] : "";
    if (strcmp(command, "serve") == 0) {
        options o = options_parse(count - 2, arguments + 2, false);
        serve(&o);
    } else if (strcmp(command, "load") == 0) {
        options o = options_parse(count - 2, arguments + 2, true);
        load(&o);
    } else {
        fail(2,
             "peer-zmq serve --listen ADDR [--cpu N], or peer-zmq load --connect ADDR --mode MODE "
             "(--seconds S | --requests N) [--in-flight N] [--size B] [--connections C] "
             "[--warmup-seconds W] [--cpu N]",
             "no such command: \"%s\"", command);
    }
    return 0;
}
