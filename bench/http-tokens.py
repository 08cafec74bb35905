#!/usr/bin/env python3
"""Requests per second and CPU time per request of the HTTP door, by the number of tokens.

    bench/http-tokens.py TELPHER [--tokens 1,1000,10000] [--seconds 5] [--repeats 3] [--format 1|2]

TELPHER is a release build. For each count a node is started on a data directory with that many
tokens; keep-alive connections ask `POST /v1/take` with the last of them. CPU time is the node's own
(utime + stime of /proc/PID/stat), so that it does not depend on how fast this client is. `--format
1` writes the salted hashes of version 0.1.0, which both versions read; 2 what `telpher token add`
writes since. One JSON line per run.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import tempfile
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 4
BODY = b'{"subject":"default/default/bench","cost":1}'


def write_tokens(path, count, version):
    rows = [f"version = {version}\n"]
    for index in range(count):
        text = "tlp_" + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        rows.append(f'[[token]]\nname = "t-{index}"\nrole = "agent"\ncreated = 0\n')
        if version == 1:
            salt = secrets.token_bytes(16)
            digest = hmac.new(salt, text.encode(), hashlib.sha256).hexdigest()
            rows.append(f'salt = "{salt.hex()}"\nhash = "{digest}"\n')
        else:
            digest = hashlib.sha256(text.encode()).hexdigest()
            rows.append(f'for = ["*/*/*"]\nsha256 = "{digest}"\n')
    with open(path, "w") as file:
        file.write("\n".join(rows))
    os.chmod(path, 0o600)
    return text


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def ask(address, token, until, counts, index):
    host, port = address.rsplit(":", 1)
    stream = socket.create_connection((host, int(port)))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = (
        f"POST /v1/take HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ).encode() + BODY
    while time.monotonic() < until:
        stream.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += stream.recv(4096)
        head, body = answer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 200"), head
        lines = head.lower().split(b"\r\n")
        size = next(int(it[15:]) for it in lines if it.startswith(b"content-length:"))
        while len(body) < size:
            body += stream.recv(4096)
        counts[index] += 1


def measure(binary, count, version, seconds):
    with tempfile.TemporaryDirectory() as home:
        data = os.path.join(home, "data")
        os.mkdir(data, 0o700)
        token = write_tokens(os.path.join(data, "tokens.toml"), count, version)
        doors = ["native", "http", "kafka", "slim"]
        flags = [word for door in doors for word in (f"--{door}-listen", "127.0.0.1:0")]
        command = [os.path.abspath(binary), "serve", "--json", "--data", data, *flags]
        node = subprocess.Popen(
            command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            ready = json.loads(node.stdout.readline())
            address = ready["http"].split("://")[1]
            counts = [0] * CONNECTIONS
            ask(address, token, time.monotonic() + 0.5, [0], 0)
            before, began = cpu_seconds(node.pid), time.monotonic()
            threads = [
                threading.Thread(target=ask, args=(address, token, began + seconds, counts, index))
                for index in range(CONNECTIONS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took, spent = time.monotonic() - began, cpu_seconds(node.pid) - before
            return {
                "tokens": count,
                "format": version,
                "requests_per_s": round(sum(counts) / took),
                "cpu_us_per_request": round(spent / sum(counts) * 1e6, 1),
            }
        finally:
            node.terminate()
            node.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--tokens", default="1,1000,10000")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--format", type=int, default=1)
    args = parser.parse_args()
    for _ in range(args.repeats):
        for count in map(int, args.tokens.split(",")):
            print(json.dumps(measure(args.binary, count, args.format, args.seconds)), flush=True)


main()
