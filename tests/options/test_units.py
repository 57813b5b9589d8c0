"""Numbers of flags with a unit: k, M and G are powers of 1,000, Ki, Mi and Gi powers of 1,024."""

from __future__ import annotations

from typing import Any

import click
import pytest

from hydra.cli.main import cli
from hydra.options.flag_types import (
    BYTE_COUNT,
    BYTE_COUNTS,
    COUNTS,
    NUMBER,
    RATE,
    RATES,
    WHOLE_NUMBER,
    ByteCountRange,
    WholeNumberRange,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (RATE, "1k", 1_000.0),
        (RATE, "0.4", 0.4),
        (RATE, "1.5M", 1_500_000.0),
        (RATE, "max", "max"),
        (RATES, "100,1k,max", [100.0, 1_000.0, "max"]),
        (COUNTS, "30,1k,1e3", [30, 1_000, 1_000]),
        (WHOLE_NUMBER, "1.1k", 1_100),
        (WHOLE_NUMBER, "2G", 2_000_000_000),
        (NUMBER, "2.5k", 2_500.0),
        (BYTE_COUNT, "1000", 1_000),
        (BYTE_COUNT, "1k", 1_000),
        (BYTE_COUNT, "1kB", 1_000),
        (BYTE_COUNT, "1 KiB", 1_024),
        (BYTE_COUNT, "24B", 24),
        (BYTE_COUNT, "1MB", 1_000_000),
        (BYTE_COUNT, "1.5MiB", 1_572_864),
        (BYTE_COUNTS, "1kB,1KiB", [1_000, 1_024]),
        (WholeNumberRange(1, 10_000), "10k", 10_000),
        (ByteCountRange(min=1_000_000), "500MB", 500_000_000),
    ],
)
def test_a_number_with_a_unit(kind: click.ParamType[Any], text: str, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((RATE, text) for text in ("k", "1kB", "1 kk", "nan", "1e999", "infk")),
        *((WHOLE_NUMBER, text) for text in ("1kB", "1.0001k", "KiB", "")),
        *((BYTE_COUNT, text) for text in ("1kb", "1.5B", "1Kib")),
        (WholeNumberRange(1, 10_000), "11k"),
        (COUNTS, "1,2kB"),
    ],
)
def test_a_text_that_is_no_number_with_a_unit_of_its_flag_is_rejected(kind: click.ParamType[Any], text: str) -> None:
    with pytest.raises(click.UsageError):
        kind.convert(text, None, None)


@pytest.mark.parametrize("name", ["zmq-fixed", "kafka-batch", "nats-fixed", "mqtt-fixed"])
def test_every_flag_of_bytes_takes_the_units_of_bytes(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = click.Context(command)
    of_bytes = [each for each in command.get_params(context) if each.make_metavar(context) == "BYTES"]
    assert of_bytes
    assert {each.type.convert("1KiB", None, None) for each in of_bytes} == {1024}
