/* What the server and the load generator share: addresses as ZeroMQ writes them. */
#ifndef PEER_H
#define PEER_H

#include "contract.h"

/* `tcp://127.0.0.1:PORT` or `ipc:///path`, in memory that is never freed. */
char *endpoint_of(const char *address);

/* What the last ZeroMQ call has to complain about. */
const char *complaint(void);

void serve(const options *o);
void load(const options *o);

#endif
