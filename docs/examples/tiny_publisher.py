#!/usr/bin/env python3
"""A ZMQ publisher for Hydra without a line of Hydra's: pyzmq and the standard library, one process beside its parent.

That process is relay and client at once: the controller sees a group of one. It refuses what it does not know (a load
that changes, a number of messages, seconds) with an ``error``, as section 4 asks for.
"""

import argparse
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import zmq
from tiny_parts import REPEAT_S
from tiny_step import RefusedError, Step

DISMISSED, USAGE, STRANDED, RELAY_DIED = 0, 2, 4, 5
VERSION = 3  # of the protocol
NEEDED = ("HYDRA_CONTROL", "HYDRA_CONTROL_SERVER_KEY", "HYDRA_CONTROL_CLIENT_KEY", "HYDRA_CONTROL_CLIENT_SECRET")


class Client:
    """The connection to the controller, and what it asks for: sections 2 to 4."""

    def __init__(self, group: str, client: int) -> None:
        self.id, self.seq, self.welcomed, self.known = client, 0, False, False
        self.silence_s, self.heard_s, self.repeat_s = 0.0, time.monotonic(), 0.0
        self.context = zmq.Context()
        self.line = self.context.socket(zmq.DEALER)
        self.line.setsockopt(zmq.ROUTING_ID, os.urandom(8).hex().encode())
        self.line.curve_serverkey, self.line.curve_publickey, self.line.curve_secretkey = (
            os.environ[name].encode() for name in NEEDED[1:]
        )
        self.line.linger, self.line.sndhwm, self.line.maxmsgsize = 1000, 0, 1 << 20
        self.line.connect(os.environ["HYDRA_CONTROL"])
        self.hello = {
            "v": VERSION,
            "role": "publisher",
            "group": group,
            "incarnation": 0,
            "implementation": "tiny",
            "versions": {"libzmq": zmq.zmq_version(), "pyzmq": zmq.pyzmq_version()},
            "agent": os.environ.get("HYDRA_AGENT", ""),
            "host": socket.gethostname(),
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "time_namespace": namespace("time"),
            "network_namespace": namespace("net"),
            "pid": os.getpid(),
        }
        self.step = Step(self.context, client, self.say)

    def say(self, kind: str, **fields: Any) -> None:
        """Sends a message."""
        self.seq += 1
        message = {"type": kind, "ids": [self.id], "seq": self.seq, **fields}
        self.line.send(json.dumps(message, separators=(",", ":")).encode())

    def run(self) -> NoReturn:
        """Obeys until it is dismissed or stranded."""
        patience_s = time.monotonic() + float(os.environ.get("HYDRA_WELCOME_S", "60"))
        while True:
            now_s = time.monotonic()
            if (not self.welcomed and now_s > patience_s) or 0 < self.silence_s < now_s - self.heard_s:
                self.leave(STRANDED)
            if not self.known and now_s >= self.repeat_s:
                self.repeat_s = now_s + REPEAT_S
                if self.welcomed:
                    self.say("joined", incarnations=[0], pids=[os.getpid()])
                else:
                    self.say("hello", **self.hello)
            # The channel is always answered: what a step has to do takes a few milliseconds at a time.
            wait_s = self.step.go_on()
            if self.line.poll(int(1000 * wait_s)):
                self.take(self.line.recv_multipart())

    def take(self, frames: list[bytes]) -> None:
        """Obeys a message; what is none, or for others, is ignored."""
        try:
            (frame,) = frames
            message = json.loads(frame)
            kind, ids = message["type"], message.get("ids", [])
        except (ValueError, KeyError, TypeError):
            return
        if (ids and not any(self.is_meant(item) for item in ids)) or (
            kind == "welcome" and message.get("v") != VERSION
        ):
            return
        self.heard_s = time.monotonic()
        if kind == "welcome":
            self.silence_s = message["silence_s"]
            self.known = self.known or bool(ids)
            self.repeat_s = self.repeat_s if self.welcomed else 0.0
            self.welcomed = True
        elif kind == "ping" and message.get("reply"):
            self.say("ack", epoch=0, command="ping", time_ns=time.monotonic_ns(), echo=message["time_ns"])
        elif kind == "watch":
            self.say("host", epoch=message["epoch"], samples=[])  # it reads no counters
        elif kind == "quit":
            self.leave(DISMISSED)
        elif kind == "evict":
            os._exit(1)
        elif kind in ("configure", "start", "stop"):
            self.obey(kind, message)

    def obey(self, kind: str, message: dict[str, Any]) -> None:
        """A command of a step, which may come twice: section 4."""
        step, epoch, number = self.step, message["epoch"], message["number"]
        if kind == "configure" and epoch >= step.epoch:
            try:
                step.configure(message)
            except (RefusedError, OSError, zmq.ZMQError) as e:
                step.forget()
                self.say("error", epoch=epoch, number=number, message=str(e)[:4096], fatal=False)
                return
            self.acknowledge(epoch, number, kind)
            self.say("ready", epoch=epoch, number=number, endpoint=step.endpoint)
        elif epoch != step.epoch or not step.configured:
            return
        elif kind == "start":
            step.start(message)
            self.acknowledge(epoch, number, kind)
        elif kind == "stop":
            step.stop(message)  # its answer is the report

    def acknowledge(self, epoch: int, number: int, command: str) -> None:
        """Says that the command of this number was obeyed."""
        self.say("ack", epoch=epoch, number=number, command=command, time_ns=time.monotonic_ns(), echo=0)

    def is_meant(self, item: int | list[int]) -> bool:
        """Whether an item of ``ids``, an id or a range of them, holds this client's."""
        return item[0] <= self.id <= item[1] if isinstance(item, list) else item == self.id

    def leave(self, code: int) -> NoReturn:
        """Ends at once; what was said is still delivered."""
        self.step.close()
        self.line.close()
        self.context.term()
        os._exit(code)


def namespace(name: str) -> str:
    """Where the link of a namespace leads to, "" where there is none."""
    try:
        return str(Path(f"/proc/self/ns/{name}").readlink())
    except OSError:
        return ""


def die_with_parent(parent: int | None = None) -> None:
    """Has the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def usage(what: str) -> NoReturn:
    """Says in one line what cannot be."""
    sys.stderr.write(f"tiny_publisher: {what}\n")
    sys.exit(USAGE)


def main() -> None:
    """The parent: forks the client, and sees to it that nothing stays behind (section 1)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["zmq-pub"])
    parser.add_argument("--group", required=True)
    parser.add_argument("--first-id", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--fork-window", type=int, default=128)
    parser.add_argument("--respawns", type=int, default=3)
    given = parser.parse_args()
    if given.count != 1:
        usage(f"--count {given.count}: one publisher is all that a group of this program has")
    if missing := [name for name in NEEDED if not os.environ.get(name)]:
        usage(f"{missing[0]} is missing")

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's business
    lifeline = os.environ.get("HYDRA_LIFELINE")
    if lifeline is not None:
        die_with_parent()
    me = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(me)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        Client(given.group, given.first_id).run()

    def end(*_: object) -> NoReturn:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os._exit(DISMISSED)

    signal.signal(signal.SIGTERM, end)
    ended = os.pidfd_open(child)
    poller = select.poll()
    poller.register(ended, select.POLLIN)
    if lifeline is not None:
        poller.register(int(lifeline), select.POLLIN | select.POLLHUP)
    if ended not in [descriptor for descriptor, _ in poller.poll()]:
        end()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(code if code in (DISMISSED, STRANDED) else RELAY_DIED)


if __name__ == "__main__":
    main()
