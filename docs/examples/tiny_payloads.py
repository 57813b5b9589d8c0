"""What follows the headers, by section 5 of the control protocol: zeros, random bytes, JSON, or lines of a file."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

HEADER_BYTES = 24
WORD = 2**64 - 1
STATUS = (200, 200, 200, 201, 304, 404, 429, 500)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
SENTENCES = (
    "order accepted and sent to the warehouse. ",
    "payment confirmed by the bank. ",
    "user signed in from a new device. ",
    "retrying after a timeout of the upstream service. ",
    "cache miss, value read from the database. ",
    "request rejected: the quota is used up. ",
    "connection closed by the remote host. ",
    "report written to the archive. ",
)


def payloads(settings: dict[str, Any], share: int) -> list[bytes]:
    """The payloads that a publisher sends again and again: message n has the one of number n.

    Args:
        settings: of ``configure``.
        share: its ``payload_share``.

    Raises:
        OSError: the file with the lines cannot be read.
    """
    largest, smallest = settings.get("message_size", 24), settings.get("message_size_min")
    several = smallest not in (None, largest)
    kind, seed = settings.get("payload", "zeros"), settings.get("payload_seed", 1)
    if kind == "lines":
        return list(taken(lines(settings["payload_file"], largest, smallest or HEADER_BYTES), 16 << 20, 1 << 60, 1))
    if kind == "zeros" and not several:
        return [bytes(largest - HEADER_BYTES)]
    lengths = sizes(largest, smallest if several else largest, seed)
    return list(taken(contents(kind, lengths, numbers(seed, 1), share), 1 << 20, 16_384, 64 if several else 1))


def taken(made: Iterator[bytes], most_bytes: int, most: int, least: int) -> Iterator[bytes]:
    """As many as fit, but at least so many."""
    total = 0
    for number, payload in enumerate(made):
        total += HEADER_BYTES + len(payload)
        if number and (number == most or total > (most_bytes if number >= least else 64 << 20)):
            return
        yield payload


def mixed(number: int) -> int:
    """One number of SplitMix64."""
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB & WORD
    return number ^ number >> 31


def numbers(seed: int, stream: int) -> Iterator[int]:
    """A stream of a seed, without end."""
    state = mixed((2 * seed + stream) & WORD)
    while True:
        state = state + 0x9E3779B97F4A7C15 & WORD
        yield mixed(state)


def sizes(largest: int, smallest: int, seed: int) -> Iterator[int]:
    """The lengths of the payloads, without end."""
    drawn = numbers(seed, 0)
    while True:
        size = largest if smallest == largest else smallest + next(drawn) % (largest - smallest + 1)
        yield size - HEADER_BYTES


def contents(kind: str, lengths: Iterator[int], drawn: Iterator[int], share: int) -> Iterator[bytes]:
    """Payloads of these lengths, without end."""
    if kind == "json":
        yield from records(lengths, drawn, share)
    for length in lengths:
        words = () if kind == "zeros" else islice(drawn, (length + 7) // 8)
        yield b"".join(word.to_bytes(8, "little") for word in words)[:length].ljust(length, b"\0")


def records(lengths: Iterator[int], drawn: Iterator[int], share: int) -> Iterator[bytes]:
    """JSON records of these lengths."""
    before = milliseconds = 0
    for index, length in enumerate(lengths):
        wished = (before + length) * share // 10_000 - before * share // 10_000
        before += length
        random = max(min(wished, length - (109 if length >= 109 else 24)), 0)
        words = islice(drawn, -(-random // 10))
        trace = "".join(ALPHABET[word >> 6 * at & 63] for word in words for at in range(10))[:random]
        milliseconds += next(drawn) % 250
        what = next(drawn)
        seconds, thousandths = divmod(milliseconds, 1000)
        record = (
            f'{{"id":{10_000_000 + index % 10_000_000},"trace":"{trace}","time":"2026-01-01T'
            f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{thousandths:03}Z"
            f'","host":"web-{what % 32:02}","status":{STATUS[(what >> 8) % 8]},"ms":{1000 + (what >> 16) % 9000}'
            ',"text":"'
        )
        while len(record) < length - 2:
            record += SENTENCES[next(drawn) % 8][: length - 2 - len(record)]
        yield (record + '"}').encode()[:length]


def lines(name: str, largest: int, smallest: int) -> Iterator[bytes]:
    """The lines of a file, cut and filled up."""
    file = Path(name)
    try:
        text = file.read_bytes() if file.is_file() or not file.exists() else b""
    except OSError as e:
        raise OSError(f"cannot read payload_file {name}: {e.strerror}") from None
    if not text:
        raise OSError(f"payload_file {name} has no lines")
    for line in text.removesuffix(b"\n").split(b"\n"):
        yield line[: largest - HEADER_BYTES].ljust(smallest - HEADER_BYTES)
