"""OpenTelemetry, settings for Kafka clients, the pytest fixture, threads without a loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import telpher
from telpher import kafka
from telpher.testing import Node

TRACED = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import telpher

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
agent = telpher.Agent("acme/test/traced")

@agent.method
async def upper(text: str) -> str:
    return text.upper()

@agent.mailbox
async def job(body: bytes) -> None:
    pass

async def main():
    async with telpher.connect(sys.argv[1]) as server, agent.attached(server):
        async with telpher.connect(sys.argv[1]) as caller:
            await caller.request("acme/test/traced", "x", method="upper")
            await caller.write("acme/test/traced", "x")
            while len(spans.get_finished_spans()) < 3:
                await asyncio.sleep(0.01)

asyncio.run(asyncio.wait_for(main(), 30))
client, server = None, None
for span in spans.get_finished_spans():
    if span.kind is trace.SpanKind.CLIENT:
        client = span
    elif span.name.startswith("answer"):
        server = span
assert client.name == "request acme/test/traced", client.name
assert server.parent.span_id == client.context.span_id
assert server.context.trace_id == client.context.trace_id
assert server.attributes["rpc.method"] == "upper"
print("ok")
"""


def test_spans_of_caller_and_handler_are_one_trace(node: Node) -> None:
    done = run(TRACED, node.address)
    assert done.stdout == "ok\n", done.stderr


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_opentelemetry_is_not_imported_by_the_package() -> None:
    code = "import sys, telpher, telpher.sync; print('opentelemetry' in sys.modules)"
    assert run(code).stdout == "False\n"


def test_settings_for_kafka_clients() -> None:
    assert kafka.confluent_settings("h:1", group_id="g") == {
        "bootstrap.servers": "h:1",
        "group.id": "g",
    }
    with_token = kafka.confluent_settings("h:1", token="tlp_x", user="a/b/c", authorities="ca.pem")
    assert with_token["security.protocol"] == "SASL_SSL"
    assert (with_token["sasl.username"], with_token["sasl.password"]) == ("a/b/c", "tlp_x")
    assert with_token["ssl.ca.location"] == "ca.pem"
    settings = kafka.aiokafka_settings("h:1", token="tlp_x", group_id="g")
    assert settings["security_protocol"] == "SASL_PLAINTEXT"
    assert settings["sasl_plain_password"] == "tlp_x" and settings["group_id"] == "g"
    assert "ssl_context" in kafka.aiokafka_settings("h:1", authorities="")


def test_fixture_starts_a_node(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import telpher.sync\n"
        "def test_node(telpher_node):\n"
        "    with telpher.sync.connect(telpher_node.address) as node:\n"
        "        assert node.records('acme/demo/log').append('x').next == 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "telpher._pytest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_node_that_cannot_start_shows_its_log() -> None:
    with pytest.raises(telpher.Unavailable, match="nonsense"), Node(options={"nonsense": 1}):
        raise AssertionError("the node must not start")


@pytest.mark.long
def test_uvloop_runs_the_client(node: Node) -> None:
    code = (
        "import sys, uvloop, telpher\n"
        "async def main():\n"
        "    async with telpher.connect(sys.argv[1]) as node:\n"
        "        log = node.records('acme/test/uvloop')\n"
        "        print((await log.append('x')).next)\n"
        "uvloop.run(main())\n"
    )
    done = run(code, node.address)
    assert done.stdout == "1\n", done.stderr
