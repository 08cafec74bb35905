"""Network namespaces for three nodes and a client, with a link of its own between any two of them.

Every host has the address 10.213.0.N on its loopback device, and a route to each other host over the
link to it. Nothing is forwarded, so a link that is down separates exactly two hosts.
"""

import ctypes
import os
import subprocess

CLIENT = 9
NODES = (1, 2, 3)
HOSTS = (*NODES, CLIENT)
CLONE_NEWNET = 0x40000000


def address(host):
    return f"10.213.0.{host}"


def run(*command):
    subprocess.run(command, check=True)


class Network:
    """The namespaces. They exist until `close`."""

    def __init__(self):
        self.prefix = f"tel{os.getpid()}-"
        self.down = set()
        for host in HOSTS:
            run("ip", "netns", "add", self.namespace(host))
            self.ip(host, "link", "set", "lo", "up")
            self.ip(host, "address", "add", f"{address(host)}/32", "dev", "lo")
        for number, (a, b) in enumerate(self.pairs()):
            ends = f"to{b}", f"to{a}"
            run(
                *("ip", "link", "add", ends[0], "netns", self.namespace(a)),
                *("type", "veth", "peer", "name", ends[1], "netns", self.namespace(b)),
            )
            for host, other, end, last in ((a, b, ends[0], 1), (b, a, ends[1], 2)):
                self.ip(host, "address", "add", f"10.213.{number + 1}.{last}/30", "dev", end)
            self.set_link(a, b, True)

    def namespace(self, host):
        return f"{self.prefix}{host}"

    def pairs(self):
        return [(a, b) for a in HOSTS for b in HOSTS if a < b]

    def ip(self, host, *command):
        run("ip", "-n", self.namespace(host), *command)

    def set_link(self, a, b, is_up):
        """Restores or cuts the link of two hosts. Packets under way are lost."""
        number = self.pairs().index((min(a, b), max(a, b))) + 1
        for host, other in ((a, b), (b, a)):
            self.ip(host, "link", "set", f"to{other}", "up" if is_up else "down")
        if is_up:
            for host, other in ((a, b), (b, a)):
                via = f"10.213.{number}.{1 if other < host else 2}"
                source = ("src", address(host))
                target = (f"{address(other)}/32", "via", via, "dev", f"to{other}")
                self.ip(host, "route", "flush", f"{address(other)}/32")
                self.ip(host, "route", "replace", *target, *source)
            self.down.discard((a, b))
        else:
            self.down.add((a, b))

    def silence(self, host, other):
        """Drops everything that a host sends to another, in this direction only."""
        self.ip(host, "route", "replace", "blackhole", f"{address(other)}/32")
        self.down.add((host, other))

    def heal(self):
        """Restores all links."""
        for a, b in list(self.down):
            self.set_link(a, b, True)

    def command(self, host, command):
        """Returns a command that runs on a host."""
        return ["ip", "netns", "exec", self.namespace(host), *command]

    def enter(self, host):
        """Moves this thread, and the threads that it will start, to a host."""
        with open(f"/run/netns/{self.namespace(host)}") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def close(self):
        for host in HOSTS:
            subprocess.run(("ip", "netns", "del", self.namespace(host)), check=False)
