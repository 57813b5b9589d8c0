"""A publisher's step, by sections 5 and 6 of the control protocol, and what ZMQ is told (section 12)."""

import os
import resource
import struct
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import zmq
from tiny_parts import REPEAT_S, Repeated, histogram
from tiny_payloads import HEADER_BYTES, payloads

HEADER = struct.Struct("<IIQQ")
END_MARK = 2**63
KEEPS_UP_NS = 5_000_000
CONTROL_S, IDLE_S = 0.01, 0.5
"""How long the controller may wait for an answer in a step, and beside one."""


class RefusedError(Exception):
    """A configuration that cannot be."""


class Step:
    """What is configured, what was sent, and what is due next: ``go_on`` does it, and says how long nothing is."""

    def __init__(self, context: zmq.Context[Any], client: int, say: Callable[..., None]) -> None:
        self.context, self.id, self.say = context, client, say
        self.epoch, self.endpoint, self.configured = 0, "", False
        self.socket: Any = None
        self.made_of: tuple[int, bool] | None = None
        self.forget()

    def forget(self) -> None:
        """Nothing of a step before is left."""
        self.configured = self.sending = self.stopped = False
        self.begun: dict[str, Any] | None = None
        self.report: dict[str, Any] | None = None
        self.repeated: list[Repeated] = []
        self.sent = self.bytes = self.wire_bytes = self.first_ns = self.last_ns = self.blocked_ns = 0
        self.lag: list[int] = []
        self.early = ""

    # --- commands --------------------------------------------------------------------------------------------------

    def configure(self, message: dict[str, Any]) -> None:
        """Binds what has to be bound and begins to send probes.

        Raises:
            RefusedError: it asks for what this client does not know.
        """
        if message["epoch"] == self.epoch and self.configured:
            if not message["probe"] and self.begun is None:
                self.repeated = []
            return
        self.forget()
        self.epoch = message["epoch"]
        settings = message["settings"]
        unknown = [name for name in ("load", "course_s", "spells") if message.get(name)]
        unknown += ["messages"] if settings.get("messages") is not None else []
        if unknown:
            raise RefusedError(f"this client knows no {unknown[0]}")
        system = {"sndhwm": 1000, "rcvhwm": 1000, "nodrop": False} | (message.get("system") or {})
        for name, value in system.items():
            kind: type = bool if name == "nodrop" else int
            if name not in ("sndhwm", "rcvhwm", "nodrop") or type(value) is not kind or not 0 <= value < 2**31:
                raise RefusedError(f"system has no {name} of {value!r}")
        self.payloads = payloads(settings, message.get("payload_share", 0))
        self.bind(system["sndhwm"], system["nodrop"])
        self.rate = settings.get("rate", "max")
        self.burst, self.progress_s = settings["burst"], message.get("progress_s", 0)
        self.usage = resource.getrusage(resource.RUSAGE_SELF)
        self.configured = True
        if message["probe"]:
            # A probe for a group reaches one member of it: they become no rarer.
            longest_s = 0.05 if message.get("group") else 0.5
            self.repeated = [Repeated(self.probe, longest_s)]

    def start(self, message: dict[str, Any]) -> None:
        """Begins the window; the first start counts."""
        if self.begun is not None:
            return
        self.begun, self.clock = message, message["clock"]
        self.start_ns, self.stop_ns = message["start_at_ns"], message["stop_at_ns"]
        self.usage = resource.getrusage(resource.RUSAGE_SELF)
        self.sending, self.next_progress_ns = True, self.start_ns
        self.repeated = []

    def stop(self, message: dict[str, Any]) -> None:
        """Ends the window, perhaps earlier; has the report sent, once more if it was sent already."""
        if self.begun is None:
            return
        self.stop_ns, self.stopped = min(self.stop_ns, message["stop_at_ns"]), True
        self.stop_number = message["number"]
        if self.report is not None:
            self.say("report", number=self.stop_number, **self.report)

    # --- what is due -----------------------------------------------------------------------------------------------

    def go_on(self) -> float:
        """Does what is due; returns for how long nothing is, s."""
        waits = [again.go_on() for again in self.repeated]
        if not self.sending:
            if self.begun is not None and self.stopped and self.report is None:
                self.tell()
            return min([IDLE_S, *waits])
        self.look_at_memory()
        due_ns = self.send_burst()
        now_ns = self.now_ns()
        if self.progress_s and self.next_progress_ns <= now_ns <= self.stop_ns:
            if self.next_progress_ns > self.start_ns:
                self.say("progress", epoch=self.epoch, messages=self.sent, time_ns=now_ns)
            self.next_progress_ns += round(self.progress_s * 1e9)
        return min([CONTROL_S, max(0.0, (due_ns - now_ns) / 1e9), *waits])

    def send_burst(self) -> int:
        """Sends what is due, at most one burst; returns when the next message is, on the step's clock."""
        now_ns = self.now_ns()
        if now_ns < self.start_ns:
            return self.start_ns
        for nth in range(self.burst):
            due_ns = now_ns if self.rate == "max" else self.due_ns(self.sent)
            if not self.is_open(due_ns, now_ns):
                self.sending = False
                break
            if due_ns > now_ns:
                return due_ns
            if not self.offer(HEADER.pack(self.epoch, self.id, self.sent, due_ns)):
                break
            if nth == 0:
                self.last_ns = self.now_ns()
                self.first_ns = self.first_ns or self.last_ns
                if self.rate != "max":
                    self.lag.append(max(0, self.last_ns - due_ns) // 1000)
        return now_ns

    def is_open(self, due_ns: int, now_ns: int) -> bool:
        """Whether a message that is due then is still sent: past the end, only if this publisher had kept up."""
        if due_ns >= self.stop_ns or self.early:
            return False
        return now_ns < self.stop_ns or (due_ns >= self.stop_ns - KEEPS_UP_NS and now_ns < self.stop_ns + KEEPS_UP_NS)

    def offer(self, header: bytes) -> bool:
        """Whether the library took the next message."""
        payload = self.payloads[self.sent % len(self.payloads)]
        offered_ns = time.monotonic_ns()
        if not self.put(header + payload):
            self.blocked_ns += time.monotonic_ns() - offered_ns
            return False
        size = HEADER_BYTES + len(payload)
        self.sent += 1
        self.bytes += size
        self.wire_bytes += size + (2 if size < 256 else 9)
        return True

    def put(self, frame: bytes, flags: int = 0) -> bool:
        """Sends a frame unless the queue is full."""
        try:
            self.socket.send(frame, flags)
        except zmq.Again:
            return False
        return True

    def look_at_memory(self) -> None:
        """Stops early where it has more memory than it may have."""
        limit = int(os.environ.get("HYDRA_MEMORY_LIMIT_BYTES", "0"))
        if limit and not self.early and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > limit:
            self.early = f"it has more than {limit} bytes of memory"
            self.repeated = [Repeated(self.complain, REPEAT_S)]

    # --- what is said again ----------------------------------------------------------------------------------------

    def probe(self) -> None:
        """Proves the path to whoever reads it."""
        self.put(HEADER.pack(0, self.id, self.epoch, 0), zmq.NOBLOCK)

    def mark(self) -> None:
        """Says that nothing of this epoch follows."""
        self.put(HEADER.pack(0, self.id, END_MARK + self.epoch, self.now_ns()), zmq.NOBLOCK)

    def complain(self) -> None:
        """Says why the window is over for this publisher."""
        self.say("error", epoch=self.epoch, message=self.early, fatal=False)

    def tell(self) -> None:
        """Reports, and marks the end of the data."""
        now, began = resource.getrusage(resource.RUSAGE_SELF), self.usage
        usage = {
            "cpu_user_s": now.ru_utime - began.ru_utime,
            "cpu_system_s": now.ru_stime - began.ru_stime,
            "max_rss_bytes": now.ru_maxrss * 1024,
        }
        body = {
            "sent": self.sent,
            "acknowledged": self.sent,
            "failed": 0,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "bytes": self.bytes,
            "lag": histogram(self.lag),
            "usage": usage,
            "unacknowledged": [],
            "blocked_ns": self.blocked_ns,
            "stopped_early": self.early,
            "unacknowledged_joined": False,
            "system": {"wire_bytes": self.wire_bytes},
            "ack_latency": histogram([]),
        }
        self.report = {"epoch": self.epoch, "publisher": body, "subscriber": None}
        self.say("report", number=self.stop_number, **self.report)
        self.repeated = [Repeated(self.mark, 60.0, ends_s=60.0)]

    # --- clock and socket ------------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """The step's clock."""
        passed = time.monotonic_ns() - self.clock["at_ns"]
        return int(self.clock["step_ns"] + passed + passed * self.clock.get("rate_ppb", 0) // 10**9)

    def due_ns(self, number: int) -> int:
        """When a message is due, on the step's clock."""
        rate = Fraction(self.rate).limit_denominator(10**6)
        return int(self.start_ns + number * 10**9 * rate.denominator // rate.numerator)

    def bind(self, sndhwm: int, nodrop: bool) -> None:
        """The socket, a new one if it is made of something else."""
        if self.socket is not None and self.made_of == (sndhwm, nodrop):
            return
        self.close()
        self.socket = made = self.context.socket(zmq.XPUB if nodrop else zmq.PUB)
        made.linger, made.backlog, made.sndhwm = 0, 4096, sndhwm
        if nodrop:
            made.setsockopt(zmq.XPUB_NODROP, 1)
            made.sndtimeo = 10
        host, ports = os.environ.get("HYDRA_DATA_HOST", "127.0.0.1"), os.environ.get("HYDRA_PORTS", "")
        address = f"tcp://{host}:{ports.split(',')[0] or '*'}"
        patience_s = time.monotonic() + 5
        while True:
            try:
                made.bind(address)
                break
            except zmq.ZMQError as e:
                # A port that was given is free again soon after the socket before was closed.
                if e.errno != zmq.EADDRINUSE or time.monotonic() > patience_s:
                    self.close()
                    raise RefusedError(f"cannot bind {address}: {e.strerror}") from e
                time.sleep(0.02)
        self.endpoint, self.made_of = made.getsockopt_string(zmq.LAST_ENDPOINT), (sndhwm, nodrop)

    def close(self) -> None:
        """Closes the socket."""
        if self.socket is not None:
            self.socket.close(0)
        self.socket = self.made_of = None
