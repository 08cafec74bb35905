"""The client's connection, driven by blocking sockets."""
