"""The file of an experiment: errors with the key and what to try, and files that other packages bring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydra.config import plugins
from hydra.config.experiment_file import experiments_in, read_experiment
from hydra.config.file_locations import experiment_named, experiments
from hydra.errors import ConfigError
from hydra.experiments.experiment import experiment_of
from hydra.system import Published
from hydra.system.experiment import ExperimentOptions

TEXT = Path(__file__).with_name("two_rates.toml").read_text()


def written(folder: Path, old: str = "", new: str = "", name: str = "mine") -> Path:
    """A file like that of the two rates, with other text at one place."""
    assert old in TEXT
    path = folder / f"{name}.toml"
    path.write_text(TEXT.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("place", "plaice", "mine.toml: plaice: unknown key; did you mean place?"),
        ('title = "two rates"\n', "", "mine.toml: title: is missing; add it"),
        ("scale = 0.02", 'scale = "small"', "mine.toml: scale: must be a valid number, not 'small'"),
        ('rows = "parts"', 'rows = "part"', "tables.0.rows: must be 'points', 'means', "),
        ("notes = [", "notes = [3, ", "tables.0.notes.0: must be a table"),
        ('about = "{rate}', 'about = "{rte}', "parts.0.about: has an unknown name 'rte'; did you mean rate?"),
        (
            'about = "{rate}',
            'about = "{rate',
            "parts.0.about: cannot be read: expected '}' before end of string; write {{",
        ),
        ("=20 * scale", "=20 *", "parts.0.series.0.points.0.duration_s: is no expression"),
        ("at('only').row", "att('only').row", "has an unknown name 'att'; did you mean at?"),
        ('columns = ["part"', 'columns = ["prt"', "tables.0.columns: has an unknown name 'prt'; did you mean part?"),
        (
            'compared = ["avg_rx_rate_pps"]',
            'compared = ["mb_per_sec"]',
            "tables.0.compared: 'mb_per_sec' is no column of this table",
        ),
        ('name = "only"\n', "", "parts.0.series.0.points.0: has no name; add it"),
        ('columns = ["part"', 'points = ["{1:x}"]\ncolumns = ["part"', "tables.points: '1' in braces is no name"),
        ("test_running:line", "test_running:no_line", "there is no function tests.experiments.test_running:no_line"),
        ("title", "title = ", "not TOML"),
    ],
)
def test_a_wrong_file_is_one_line_with_the_key_and_what_to_try(tmp_path: Path, old: str, new: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        experiment_of(read_experiment(written(tmp_path, old, new))[0])
    assert text in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('name = "rate-{rate}"', 'name = "../{rate}"', "the name of a part is that of its folder, not '../200'"),
        ("clients = 1", 'publishers = "many"', "publishers of only must be a whole number, not 'many'"),
        ("[[parts.series.points]]", "each.x = []\n[[parts.series.points]]", "part rate-200 has no points"),
    ],
)
def test_parts_that_cannot_be_made_are_an_error(tmp_path: Path, old: str, new: str, text: str) -> None:
    experiment = experiment_of(read_experiment(written(tmp_path, old, new))[0])
    assert experiment.parts is not None
    with pytest.raises(ConfigError) as error:
        experiment.parts(ExperimentOptions(scale=0.02))
    assert text in str(error.value)


def test_the_example_of_the_docs_is_an_experiment(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    path = tmp_path / "batches.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    experiment = experiment_of(read_experiment(path)[0])
    assert experiment.parts is not None
    (part,) = experiment.parts(ExperimentOptions(1.0))
    points = [(point["name"], point["batch_bytes"], point["messages"]) for point in part.scenario["sweep"]["points"]]
    assert points == [("batch-8196", 8196, 10_000_000), ("batch-100000", 100_000, 10_000_000)]
    (table,) = experiment.views(ExperimentOptions(1.0), ())
    assert table.notes == ["10,000,000 records in each row"]


def test_files_of_a_package_stand_behind_those_of_hydra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments").mkdir()
    written(tmp_path / "experiments")
    systems = dict(plugins.systems())
    systems["zmq"] = replace(systems["zmq"], published=Published(folder=tmp_path))
    monkeypatch.setattr(plugins, "systems", lambda: systems)
    assert list(experiments("zmq")) == ["mine"]
    assert list(experiments())[-1] == "mine"
    found = experiment_named("mine")
    assert found is not None
    assert found.system == "zmq"


def test_a_name_of_two_experiments_is_an_error(tmp_path: Path) -> None:
    alone = '[alone.other]\ntitle = "one"\ntakes_s = 1.0\n'
    written(tmp_path, "[scenario]", f"{alone}[scenario]")
    written(tmp_path, name="other")
    with pytest.raises(ConfigError, match="other: is the name of two experiments; rename one of them"):
        experiments_in(tmp_path)
