"""kafka-python counts CRC-32C, of every batch it writes and reads, in C and never in Python."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import crc32c
import pytest
from kafka.record import default_records

from hydra.kafkatest.kafka_python import kinds
from tests.suite.waiting import LONG_S

RECORDS = 50


def _batch() -> bytes:
    """A record batch as kafka-python's producer sends it."""
    builder = default_records.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset in range(RECORDS):
        builder.append(offset, timestamp=None, key=None, value=bytes([offset]) * 100, headers=[])
    return bytes(builder.build())


def test_the_checksum_is_crc32c_and_counted_by_the_extension() -> None:
    # The check value of CRC-32/ISCSI, as the catalogues of CRC algorithms give it.
    assert default_records.calc_crc32c(b"123456789") == crc32c.crc32c(b"123456789") == 0xE3069283
    assert default_records.calc_crc32c.__defaults__ == (crc32c.crc32c,)


def test_a_batch_that_was_changed_on_its_way_is_found_out() -> None:
    good = _batch()
    assert default_records.DefaultRecordBatch(good).validate_crc()
    bad = good[:-1] + bytes([good[-1] ^ 1])
    assert not default_records.DefaultRecordBatch(bad).validate_crc()


@pytest.mark.parametrize("kind", ["kafka-pub", "kafka-sub"])
def test_hello_names_the_extension(kind: str) -> None:
    assert kinds()[kind].versions()["crc32c"] == version("crc32c")


@pytest.mark.tier("all")
def test_a_client_without_the_extension_does_not_start() -> None:
    """It would measure its own checksums instead of Kafka."""
    without = "import sys; sys.modules['crc32c'] = None; import hydra.kafkatest.kafka_python"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False, timeout=LONG_S)
    assert done.returncode == 1
    assert "crc32c" in done.stderr.splitlines()[-1]
