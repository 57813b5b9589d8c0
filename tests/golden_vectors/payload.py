"""What messages consist of, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from tests.golden_vectors.common import Case
from tests.golden_vectors.traffic import traffic

HEADER_BYTES: Final = 24
WORDS: Final = (
    "order accepted and sent to the warehouse. ",
    "payment confirmed by the bank. ",
    "user signed in from a new device. ",
    "retrying after a timeout of the upstream service. ",
    "cache miss, value read from the database. ",
    "request rejected: the quota is used up. ",
    "connection closed by the remote host. ",
    "report written to the archive. ",
)
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def splitmix(seed: int, stream: int) -> Iterator[int]:
    """The numbers of one stream of a seed."""
    word = 2**64

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
        return z ^ (z >> 31)

    state = mix((2 * seed + stream) % word)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % word
        yield mix(state)


def record(numbers: Iterator[int], index: int, length: int, traced: int, milliseconds: int) -> tuple[str, int]:
    """A JSON record with this many random characters, and the milliseconds of its day."""
    letters = ""
    while len(letters) < traced:
        number = next(numbers)
        letters += "".join(LETTERS[number // 64**k % 64] for k in range(10))
    milliseconds += next(numbers) % 250
    host, rest = next(numbers), milliseconds // 1000
    event = {
        "id": 10_000_000 + index,
        "trace": letters[:traced],
        "time": f"2026-01-01T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.{milliseconds % 1000:03d}Z",
        "host": f"web-{host % 32:02d}",
        "status": [200, 200, 200, 201, 304, 404, 429, 500][host // 256 % 8],
        "ms": 1000 + host // 65536 % 9000,
        "text": "",
    }
    bare = json.dumps(event, separators=(",", ":"))
    spare = max(length - len(bare), 0)
    while len(str(event["text"])) < spare:
        event["text"] = str(event["text"]) + WORDS[next(numbers) % 8]
    event["text"] = str(event["text"])[:spare]
    return json.dumps(event, separators=(",", ":"))[:length], milliseconds


def payload(kind: str, size: int, smallest: int | None = None, seed: int = 1, share: int = 0, lines: str = "") -> Case:
    """The first messages without their headers, in hex; and the bytes of this many messages with them."""
    sizes, numbers = splitmix(seed, 0), splitmix(seed, 1)
    several = smallest is not None and smallest < size
    given = lines.splitlines()
    found: list[bytes] = []
    characters = milliseconds = 0
    for n in range(len(given) if lines else 6):
        length = (smallest or 0) + next(sizes) % (size - (smallest or 0) + 1) if several else size
        length -= HEADER_BYTES
        if kind == "zeros":
            found.append(bytes(length))
        elif kind == "random":
            words = b"".join(next(numbers).to_bytes(8, "little") for _ in range(-(-length // 8)))
            found.append(words[:length])
        elif kind == "json":
            wished = (characters + length) * share // 10_000 - characters * share // 10_000
            characters += length
            most = max(length - 109 if length >= 109 else length - 24, 0)
            text, milliseconds = record(numbers, n, length, min(wished, most), milliseconds)
            found.append(text.encode())
        else:
            found.append(given[n].encode()[: size - HEADER_BYTES].ljust((smallest or HEADER_BYTES) - HEADER_BYTES))
    return {
        "payload": kind,
        "message_size": size,
        "message_size_min": smallest,
        "payload_seed": seed,
        "share": share,
        "lines": lines,
        "messages": [one.hex() for one in found],
        "bytes": [sum(HEADER_BYTES + len(one) for one in found[:n]) for n in range(len(found) + 1)],
    }


def of_ranges(kind: str, drawn: Case) -> Case:
    """Messages whose sizes are drawn from ranges: each is the beginning of the payload of the largest size."""
    case = payload(kind, max(high for _, high in drawn["sizes"]), seed=drawn["seed"])
    found = [case["messages"][n][: 2 * (size - HEADER_BYTES)] for n, _, _, size in drawn["messages"][:6]]
    case["messages"] = found
    case["bytes"] = [sum(HEADER_BYTES + len(one) // 2 for one in found[:n]) for n in range(len(found) + 1)]
    return case | {
        "traffic": {name: drawn[name] for name in ("seed", "sizes", "size_table")},
        "publisher": drawn["publisher"],
    }


def payloads() -> dict[str, Case]:
    """By name."""
    lines = "the first\n\na third that is longer than a message may be\nlast, äöü"
    return {
        "zeros": payload("zeros", 100),
        "zeros-of-several-sizes": payload("zeros", 40, 24),
        "random": payload("random", 100),
        "random-of-several-sizes": payload("random", 61, 25, 2),
        "random-of-another-seed": payload("random", 40, seed=2**63 - 1),
        "random-header-only": payload("random", 24),
        "json": payload("json", 300, share=2500),
        "json-without-random-characters": payload("json", 400),
        "json-of-random-characters": payload("json", 250, share=10_000),
        "json-of-several-sizes": payload("json", 320, 120, 7, 333),
        "json-that-is-cut": payload("json", 100, share=5000),
        "json-that-is-very-short": payload("json", 30, 25, share=5000),
        "zeros-of-ranges": of_ranges("zeros", traffic(sizes=[[24, 40], [50, 90]], size_table=[[0, 0], [2**31, 0]])),
        "random-of-ranges": of_ranges("random", traffic(seed=7, publisher=3, sizes=[[24, 60], [61, 100], [101, 101]])),
        "lines": payload("lines", 60, lines=lines),
        "lines-with-an-end": payload("lines", 60, lines=lines + "\n"),
        "lines-filled-up": payload("lines", 60, 40, lines=lines),
    }
