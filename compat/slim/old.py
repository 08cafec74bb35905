"""An application of slim-bindings 1.x is refused once, and stops: `old.py URL PYTHON`."""

import subprocess
import sys
import time

APPLICATION = """
import os, sys, threading, time
import slim_bindings as slim
slim.initialize_with_defaults()
service = slim.create_service("old")
def work():
    connection = service.connect(slim.new_insecure_client_config(sys.argv[1]))
    app = service.create_app_with_secret(slim.Name("compat", "slim", "old"), "a" * 40)
    app.subscribe(app.name(), connection)
threading.Thread(target=work, daemon=True).start()
time.sleep(5)
os._exit(0)
"""

if __name__ == "__main__":
    url, python = sys.argv[1:]
    words = [python, "-c", APPLICATION, url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    attempts = said.count("attempting to reconnect")
    assert "this application uses SLIM 1.x" in said, said[-2000:]
    assert attempts == 1, f"{attempts} attempts: {said[-2000:]}"
