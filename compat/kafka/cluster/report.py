"""What a client reports to run.py, one line each, and when it is to end.

    acked NUMBER      a record is acknowledged
    copied COUNT      so many records are copied, and the offsets behind them are committed
    notice TEXT       an event that is counted, and is no fault
    error TEXT        an error that reached the application
    refused TEXT      the error of a transaction, which a cluster does not serve

The client produces until the end of its standard input, copies the rest, and asks for a transaction.
"""

import faulthandler
import os
import signal
import sys
import threading

# Where a client hangs is shown by `kill -USR1`.
faulthandler.register(signal.SIGUSR1)

PARTITIONS = 3
# Pause between two records of the producer.
PAUSE_S = 0.005
# Time limit for what was in flight at the end.
END_LIMIT_S = 120


class Report:
    """The lines of a client, from several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acked_numbers = set()
        self.copied_numbers = set()
        self.is_over = threading.Event()
        self.is_produced = threading.Event()
        threading.Thread(target=self.await_end, daemon=True).start()

    def await_end(self):
        sys.stdin.read()
        self.is_over.set()

    def say(self, line):
        with self.lock:
            print(line.replace("\n", " "), flush=True)

    def acked(self, number):
        self.acked_numbers.add(number)
        self.say(f"acked {number}")

    def copied(self, numbers):
        self.copied_numbers.update(numbers)
        self.say(f"copied {len(self.copied_numbers)}")

    def error(self, what, error):
        self.say(f"error {what}: {type(error).__name__}: {error}")

    def is_all_copied(self):
        return self.is_produced.is_set() and self.acked_numbers <= self.copied_numbers

    def run(self, produce, copy):
        """Runs both jobs until all is copied."""
        copying = threading.Thread(target=self.guarded, args=("copy", copy))
        copying.start()
        self.guarded("produce", produce)
        self.is_produced.set()
        copying.join(END_LIMIT_S)
        if copying.is_alive():
            missing = len(self.acked_numbers - self.copied_numbers)
            self.say(f"error copy: {missing} records are not copied after {END_LIMIT_S} s")

    def ask_for_transaction(self, begin, refusal):
        """Begins a transaction, which must raise a refusal, and ends the process."""
        try:
            begin()
            self.say("error transaction: it is not refused")
        except refusal as error:
            self.say(f"refused {type(error).__name__}: {error}")
        # A thread that hangs does not hold up the end.
        os._exit(0)

    def guarded(self, what, job):
        try:
            job(self)
        except Exception as error:  # pylint: disable=broad-except
            self.error(what, error)
