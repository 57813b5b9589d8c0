"""The relays and servers that watch each host: commands, samples, texts of its kernel. No sockets, no clock."""

from __future__ import annotations

import bz2
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, TypeVar

import msgspec

from hydra.control.clock_offset import HostKey
from hydra.model import GroupRole
from hydra.wire import RESEND_EVERY_S
from hydra.wire.messages import Hello, HostReadings, KernelTexts, Look, Sample, Watch

_AGAIN_NS: Final = round(RESEND_EVERY_S * 1e9)


@dataclass(slots=True)
class _Question:
    """A command to hosts, and their answers.

    ``due_ns`` has the time of the next command to each host without an answer; ``hosts`` has the hosts that got one.
    """

    look: Look
    due_ns: dict[HostKey, int]
    hosts: set[HostKey] = field(default_factory=set)
    answers: dict[HostKey, KernelTexts] = field(default_factory=dict)


class KernelTextRequests:
    """Asks one relay or server of every host but the controller's own, another one after each 2 s without an answer.

    The one that answered is asked the next time, too: another container of the host sees other processes and limits.
    Times are on the controller's clock, ns.

    Args:
        own: the controller's host, which the controller reads itself.
    """

    def __init__(self, own: HostKey) -> None:
        self._own = own
        self._sources: dict[HostKey, list[bytes]] = {}
        self._host_of: dict[bytes, HostKey] = {}
        self._questions: dict[int, _Question] = {}
        self._count = 0

    def joined(self, identity: bytes, host: HostKey) -> None:
        """Adds a relay or server after its hello."""
        if host != self._own:
            self._sources.setdefault(host, []).append(identity)
            self._host_of[identity] = host

    def left(self, identity: bytes) -> None:
        """Removes a connection."""
        host = self._host_of.pop(identity, None)
        if host is not None:
            self._sources[host].remove(identity)

    def hosts(self) -> list[HostKey]:
        """The other hosts that have a relay or server."""
        return [host for host, sources in self._sources.items() if sources]

    def ask(self, hosts: Iterable[HostKey], patterns: Sequence[str], most_bytes: int, now_ns: int) -> int:
        """Has these files read on these hosts; returns the number of the question."""
        self._count += 1
        look = Look(number=self._count, patterns=list(patterns), most_bytes=most_bytes)
        self._questions[self._count] = _Question(look, dict.fromkeys(hosts, now_ns))
        return self._count

    def due(self, now_ns: int) -> list[tuple[bytes, Look]]:
        """The commands to send now, with the identity of each receiver."""
        messages = []
        for question in self._questions.values():
            for host, due_ns in question.due_ns.items():
                sources = self._sources[host]
                if now_ns >= due_ns and sources:
                    if host in question.hosts:
                        sources.append(sources.pop(0))
                    question.hosts.add(host)
                    question.due_ns[host] = now_ns + _AGAIN_NS
                    messages.append((sources[0], question.look))
        return messages

    def heard(self, identity: bytes, message: KernelTexts) -> None:
        """Adds an answer; one to a question that has ended is ignored."""
        host, question = self._host_of.get(identity), self._questions.get(message.number)
        if host is not None and question is not None and host in question.due_ns:
            del question.due_ns[host]
            question.answers[host] = message

    def answered(self, number: int) -> bool:
        """Whether all hosts that still have a relay or server have answered this question."""
        return not any(self._sources[host] for host in self._questions[number].due_ns)

    def end(self, number: int) -> Mapping[HostKey, KernelTexts]:
        """Ends a question, and returns the answers until now by host."""
        return self._questions.pop(number).answers


_T = TypeVar("_T")

_json: Final = msgspec.json.Encoder()
_BLOCK: Final = 64
"""Samples that are compressed together: successive samples have the same names and similar numbers."""


class SampleLog(Generic[_T]):
    """Samples in the order in which they were added.

    An hour has thousands of samples, each with dozens of objects, so they are kept as compressed JSON.

    Args:
        kind: the type of a sample.
    """

    def __init__(self, kind: type[_T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._blocks: list[bytes] = []
        self._newest: list[bytes] = []

    def add(self, sample: _T) -> None:
        """Adds a sample."""
        self._newest.append(_json.encode(sample))
        if len(self._newest) == _BLOCK:
            # JSON of msgspec has no line breaks.
            self._blocks.append(bz2.compress(b"\n".join(self._newest)))
            self._newest.clear()

    def since(self, first: int = 0) -> list[_T]:
        """The samples from number ``first`` on."""
        begin, left_out = divmod(first, _BLOCK)
        texts = [text for block in self._blocks[begin:] for text in bz2.decompress(block).split(b"\n")]
        return [self._decode(text) for text in (texts + self._newest)[left_out:]]


Place = tuple[str, str, str]
"""Boot id, time namespace and network namespace: processes with the same three see the same counters."""

_REPEAT_NS: Final = 10_000_000_000
"""The time between two repeats of the command: a third of the time after which a watch ends by itself."""
_SUBSCRIBERS: Final = 32
"""The most groups of subscribers that are watched."""
_MUTE_NS: Final = 2 * _AGAIN_NS


@dataclass(frozen=True, slots=True)
class WatchSource:
    """A relay or server, from which a host and a group can be watched."""

    place: Place
    agent: str
    group: str
    role: GroupRole

    @property
    def host(self) -> HostKey:
        """The host whose clock it reads."""
        return self.place[:2]


def source_of(hello: Hello) -> WatchSource:
    """The source of the figures of a host, from a hello: its agent, or its process group if the agent has no name."""
    place = (hello.boot_id, hello.time_namespace, hello.network_namespace)
    return WatchSource(place, hello.agent or hello.group, hello.group, hello.role)


@dataclass(slots=True)
class _Watcher:
    """One source in the present or last watch.

    Attributes:
        command: the last command that was sent to it; None: none was.
        sent_ns: the time of that command.
        host_since_ns: the time of the first command to read the host; None: it does not read the host.
        heard_ns: the time of its last readings in this watch; None: it has sent none.
        ended: whether readings have arrived since the end of the watch. (They may have been sent before. Later readings
            follow directly, before the clients' reports, which the run waits for.)
    """

    post: WatchSource
    command: Watch | None = None
    sent_ns: int = 0
    host_since_ns: int | None = None
    heard_ns: int | None = None
    ended: bool = False


@dataclass(slots=True)
class _Watching:
    """A watch: relays read samples of their hosts at a regular interval until its end.

    Attributes:
        on: whether the watch has not ended.
        posts: the source of each sample.
        samples: what the sources have read.
    """

    epoch: int
    every_s: float
    on: bool = True
    posts: list[WatchSource] = field(default_factory=list)
    samples: SampleLog[Sample] = field(default_factory=lambda: SampleLog(Sample))


class HostWatch:
    """The watch of every host but the controller's own by one of its sources, and of the threads of some groups.

    These groups are all publishers and servers, and one group of subscribers for each agent, up to ``_SUBSCRIBERS``,
    since all subscribers behave alike and there may be thousands of groups.

    Times are on the controller's clock, ns.

    Args:
        own: the controller's place, which the controller reads itself.
    """

    def __init__(self, own: Place) -> None:
        self.own = own
        self._watchers: dict[bytes, _Watcher] = {}
        self._by_place: dict[Place, list[bytes]] = {}
        # These sets are read after every message; among a thousand relays few have watched threads, or get commands.
        self._with_threads: dict[bytes, None] = {}
        self._subscribers: dict[str, dict[bytes, None]] = {}
        self._commanded: dict[bytes, None] = {}
        self._now: _Watching | None = None

    # --- the sources -------------------------------------------------------------------------------------------------

    def joined(self, identity: bytes, post: WatchSource) -> None:
        """Adds a relay or server after its hello."""
        self._watchers[identity] = _Watcher(post)
        self._by_place.setdefault(post.place, []).append(identity)
        if post.role == "subscriber":
            self._subscribers.setdefault(post.agent, {})[identity] = None
        else:
            self._with_threads[identity] = None

    def left(self, identity: bytes) -> None:
        """Removes a connection; if it read its host, another one of its place does so."""
        watcher = self._watchers.pop(identity, None)
        if watcher is not None:
            self._by_place[watcher.post.place].remove(identity)
            self._with_threads.pop(identity, None)
            self._subscribers.get(watcher.post.agent, {}).pop(identity, None)
            self._commanded.pop(identity, None)

    def posts(self) -> list[WatchSource]:
        """The connected sources, and those that have sent readings in this watch."""
        sources = [] if self._now is None else self._now.posts
        return list(dict.fromkeys([*(w.post for w in self._watchers.values()), *sources]))

    # --- a watch -----------------------------------------------------------------------------------------------------

    def begin(self, epoch: int, every_s: float) -> None:
        """Starts a watch, which lasts until :meth:`end`, and drops the samples of the last one."""
        self._now = _Watching(epoch, every_s)
        self._commanded.clear()
        for identity, watcher in self._watchers.items():
            self._watchers[identity] = _Watcher(watcher.post)

    def end(self) -> None:
        """Ends the watch; samples that were read before are still accepted."""
        if self._now is not None:
            self._now.on = False

    def due(self, now_ns: int) -> list[tuple[bytes, Watch]]:
        """The commands to send now, with the identity of each receiver."""
        if self._now is None:
            return []
        over = Watch(epoch=self._now.epoch, every_s=0.0, host=False)
        left = ((identity, over) for identity in self._commanded if not self._watchers[identity].ended)
        wanted = self._wanted(self._now, now_ns) if self._now.on else left
        messages = []
        for identity, watch in wanted:
            watcher = self._watchers[identity]
            resend_ns = _REPEAT_NS if self._now.on and watcher.heard_ns is not None else _AGAIN_NS
            if watcher.command == watch and now_ns < watcher.sent_ns + resend_ns:
                continue
            if watch.host and (watcher.command is None or not watcher.command.host):
                watcher.host_since_ns = now_ns
            watcher.command, watcher.sent_ns = watch, now_ns
            self._commanded[identity] = None
            messages.append((identity, watch))
        return messages

    def heard(self, identity: bytes, message: HostReadings, now_ns: int) -> None:
        """Adds readings; those of another watch, or from an unknown connection, are ignored."""
        watcher, watching = self._watchers.get(identity), self._now
        if watcher is not None and watching is not None and message.epoch == watching.epoch:
            watcher.heard_ns = now_ns
            watcher.ended = not watching.on
            for sample in message.samples:
                watching.posts.append(watcher.post)
                watching.samples.add(sample)

    def answered(self) -> bool:
        """Whether every connected source with a command has sent readings since the end."""
        return all(self._watchers[identity].ended for identity in self._commanded)

    def samples(self, first: int = 0) -> list[tuple[WatchSource, Sample]]:
        """The samples of the present or last watch in the order of arrival, from number ``first``."""
        if self._now is None:
            return []
        return list(zip(self._now.posts[first:], self._now.samples.since(first), strict=True))

    def _wanted(self, watching: _Watching, now_ns: int) -> Iterator[tuple[bytes, Watch]]:
        readers = [r for p in self._by_place if p != self.own and (r := self._reader(p, now_ns)) is not None]
        some = islice((next(iter(their)) for their in self._subscribers.values() if their), _SUBSCRIBERS)
        for identity in dict.fromkeys([*readers, *self._with_threads, *some]):
            yield identity, Watch(epoch=watching.epoch, every_s=watching.every_s, host=identity in readers)

    def _reader(self, place: Place, now_ns: int) -> bytes | None:
        """The source that reads the host of a place; a silent one moves to the end of the list."""
        posts = self._by_place[place]
        for _ in range(len(posts) - 1):
            if not self._mute(posts[0], now_ns):
                break
            posts.append(posts.pop(0))
        return posts[0] if posts else None

    def _mute(self, identity: bytes, now_ns: int) -> bool:
        watcher = self._watchers[identity]
        return (
            watcher.host_since_ns is not None and now_ns >= max(watcher.host_since_ns, watcher.heard_ns or 0) + _MUTE_NS
        )
