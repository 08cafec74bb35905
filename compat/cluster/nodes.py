"""Three processes of one cluster, each on a host of its own."""

import json
import os
import signal
import subprocess
import time
import urllib.request

from network import NODES, address

START_LIMIT_S = 60

# Size of the file system of a node. Its file has only what is written.
DISK_SIZE = 8 << 30

# Options of small segments, so that a node on a full disk soon needs another one.
SMALL = ("--journal-segment-size", "1MiB")


class Cluster:
    """The nodes. `close` ends them."""

    def __init__(self, telpher, network, directory):
        self.telpher, self.network, self.directory = telpher, network, directory
        self.processes = {}
        self.disks = []
        # Processes that were killed.
        self.kills = 0
        for node in NODES:
            self.add_disk(node)
        init = [telpher, "cluster", "init", "--data", self.data(1), *self.addresses(1), *SMALL]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
        self.key = os.path.join(self.data(1), "cluster.key")
        for node in NODES:
            self.start(node)
        self.wait_until_voters(NODES)

    def data(self, node):
        return os.path.join(self.directory, f"node-{node}")

    def add_disk(self, node):
        """Gives a node a file system of its own, which can be frozen."""
        image = f"{self.data(node)}.img"
        with open(image, "wb") as file:
            file.truncate(DISK_SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        os.mkdir(self.data(node))
        subprocess.run(["mount", "-o", "loop", image, self.data(node)], check=True)
        self.disks.append(self.data(node))
        os.rmdir(os.path.join(self.data(node), "lost+found"))

    def freeze(self, node, is_frozen):
        """Makes all writes and syncs of a node wait, or lets them go on."""
        flag = "--freeze" if is_frozen else "--unfreeze"
        subprocess.run(["fsfreeze", flag, self.data(node)], check=True)

    def fill(self, node):
        """Leaves no space on the disk of a node."""
        free = os.statvfs(self.data(node))
        size = free.f_bavail * free.f_frsize
        while size > 0:
            # What is given back meanwhile is taken too.
            with open(os.path.join(self.data(node), f"ballast-{size}"), "wb") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, size)
                except OSError:
                    size //= 2
                    continue
            free = os.statvfs(self.data(node))
            size = free.f_bavail * free.f_frsize

    def empty(self, node):
        """Gives the space back."""
        for name in os.listdir(self.data(node)):
            if name.startswith("ballast-"):
                os.remove(os.path.join(self.data(node), name))

    def addresses(self, node):
        host = address(node)
        return [
            *("--cluster-listen", f"{host}:7402", "--cluster-insecure"),
            *("--kafka-listen", f"{host}:9092", "--http-listen", f"{host}:7401"),
            *("--native-listen", f"{host}:7400"),
        ]

    def launch(self, node):
        """Starts a node, which joins if it is not a member, and does not wait for it."""
        command = [self.telpher, "serve", "--data", self.data(node), "--insecure", *SMALL]
        command += [*self.addresses(node), "--slim-listen", "none", "--native-socket", "none"]
        if node != NODES[0]:
            command += ["--join", f"{address(1)}:7402", "--cluster-key", self.key]
        log = open(os.path.join(self.directory, f"node-{node}.log"), "a")
        process = subprocess.Popen(
            self.network.command(node, command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self.processes[node] = process

    def start(self, node):
        """Starts a node, and waits until it answers."""
        self.launch(node)
        self.wait_until_ready(node)

    def wait_until_ready(self, node):
        self.wait_until(f"node {node} answers", lambda: self.ready(node) is not None)

    def ready(self, node):
        """Returns the status of `/readyz`; `None` without an answer."""
        try:
            url = f"http://{address(node)}:7401/readyz"
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def status(self, node):
        """Returns the status of the cluster as a node sees it; `None` without an answer."""
        command = [self.telpher, "cluster", "status", "--json", "--url"]
        command += [f"tcp://{address(node)}:7400"]
        try:
            asked = subprocess.run(command, capture_output=True, timeout=5)
            return json.loads(asked.stdout) if asked.returncode == 0 else None
        except (subprocess.TimeoutExpired, ValueError):
            return None

    def wait_until_voters(self, nodes):
        def are_voters():
            status = self.status(1)
            members = status["nodes"] if status else []
            return sum(member["role"] == "voter" for member in members) == len(nodes)

        self.wait_until("all nodes are voters", are_voters)

    def wait_until(self, what, is_reached):
        deadline = time.monotonic() + START_LIMIT_S
        while not is_reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {START_LIMIT_S} s: not {what}")
            time.sleep(0.1)

    def signal(self, node, number):
        """Sends a signal. `ip netns exec` becomes the node, so its id is the node's."""
        self.processes[node].send_signal(number)

    def kill(self, nodes):
        for node in nodes:
            self.signal(node, signal.SIGKILL)
        for node in nodes:
            self.processes[node].wait(30)
        self.kills += len(nodes)

    def close(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
        for disk in self.disks:
            subprocess.run(["umount", disk], check=True)
