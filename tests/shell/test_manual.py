"""Man pages: one for each command, which groff reads without a complaint."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from hydra.cli.main import cli
from hydra.cli.man_pages import pages

PAGES = dict(pages(cli))


def test_each_command_has_a_page() -> None:
    expected = {f"hydra-{name}.1" for name in cli.commands} | {"hydra.1", "hydra-zmq-rate.1", "hydra-kafka-broker-up.1"}
    assert expected <= set(PAGES)
    assert "hydra-zmqrate.1" not in PAGES  # an old name


def test_a_page_has_the_flags_with_defaults_and_the_examples() -> None:
    page = PAGES["hydra-zmq-rate.1"].replace("\\-", "-")
    for text in (
        ".SH NAME\nhydra-zmq-rate - Find the highest rate",
        '.SH "SEARCH FOR A RATE"',
        ".B --loss-target PERCENT",
        "[default: 0.5]",
        ".B --advertise ADDRESS",
        "hydra zmq-rate --subscribers 30,120",
        ".BR hydra (1)",
    ):
        assert text in page
    assert ".B hydra kafka broker up" in PAGES["hydra-kafka-broker-up.1"]
    assert ".BR hydra-kafka-broker-up (1)" in PAGES["hydra-kafka-broker.1"].replace("\\-", "-")


@pytest.mark.tier("test")
@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_reads_them_without_a_complaint() -> None:
    text = "".join(PAGES.values())
    command = ["groff", "-man", "-Tutf8", "-Kutf8", "-ww"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "hydra zmq-rate --subscribers 30,120 --out runs/z" in done.stdout.replace("\u2010", "-")
