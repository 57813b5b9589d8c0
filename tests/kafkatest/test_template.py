from __future__ import annotations

import os
from pathlib import Path

import pytest

from hydra.kafkatest import template
from hydra.kafkatest.jars import Jars, Java


@pytest.mark.parametrize(("may_write", "where"), [(True, "unpacked"), (False, "cache/hydra/kafka-9.9.9")])
def test_what_brokers_begin_with_is_kept_where_one_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_write: bool, where: str
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / template.PROPERTIES).write_text("node.id=1\n")
    (conf / "jvm.options").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: may_write)
    monkeypatch.setattr(template, "_format", lambda _java, _jars, _conf, folder: (folder / template.DATA).mkdir())
    monkeypatch.setattr(template, "_train", lambda *_: None)
    made = template.prepare(Java("java", "21"), Jars("9.9.9", tmp_path / "unpacked" / "jars"), conf)
    assert made.storage.parent.parent == tmp_path / where
    assert made.storage.is_dir()
    assert made.archive is None
