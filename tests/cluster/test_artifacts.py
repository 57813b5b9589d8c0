"""The agents' archive: what is in it, who gets it, and the errors of hydra-run if it cannot start."""

from __future__ import annotations

import hashlib
import http.client
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hydra.engine.artifacts.archive import Artifact, build, glibc_needed
from hydra.engine.artifacts.archive_server import ArtifactServer
from hydra.engine.artifacts.start_script import RUNNER, rewritten
from hydra.errors import ClusterError
from hydra.kafkatest.system import LIBRARIES
from hydra.system import Program
from tests.suite.bare_python import bare_python
from tests.suite.waiting import LONG_S, SOON_S

pytestmark = pytest.mark.tier("all")

HERE = "127.0.0.1"


def python(module: str, kind: str, libraries: tuple[str, ...] = ()) -> Program:
    return Program((sys.executable, "-m", module, kind), {}, libraries=libraries)


PYZMQ = python("hydra.zmqtest.pyzmq", "zmq-sub")
KAFKA = python("hydra.kafkatest.kafka_python", "kafka-sub", LIBRARIES["kafka-python"])
NODE = python("hydra.kafkatest.server_main", "kafka-broker")
CONFLUENT = python("hydra.kafkatest.confluent", "kafka-sub", LIBRARIES["confluent-kafka"])


def unpacked(artifact: Artifact, where: Path) -> Path:
    with tarfile.open(artifact.path) as tar:
        tar.extractall(where, filter="tar")
    return where


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return build([PYZMQ], tmp_path_factory.mktemp("artifact"))  # where no other build sweeps it


@pytest.fixture(scope="module")
def sandbox(artifact: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(artifact, tmp_path_factory.mktemp("sandbox"))


MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
PATH = f"{Path(sys.executable).resolve().parent}:/usr/local/bin:/usr/bin:/bin"


def tool(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(sandbox: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """As a Mesos executor does: nothing of this process's environment."""
    shared = sandbox / "shared"
    shared.mkdir(exist_ok=True)
    words = ("/bin/sh", RUNNER, *words)
    environment = {"PATH": PATH, "TMPDIR": str(shared), **env}
    return subprocess.run(words, cwd=sandbox, env=environment, capture_output=True, text=True, timeout=LONG_S)


@pytest.mark.tier("test")
def test_it_is_made_once_and_named_by_its_contents(artifact: Artifact) -> None:
    before = artifact.path.stat().st_mtime_ns
    assert build([PYZMQ, PYZMQ], artifact.path.parent) == artifact
    assert artifact.path.stat().st_mtime_ns == before
    assert f"py{MINOR}" in artifact.name
    assert artifact.digest in artifact.name
    assert artifact.sha256 == hashlib.sha256(artifact.path.read_bytes()).hexdigest()


def test_groups_start_with_nothing_but_the_archive(folder: Path, tmp_path: Path) -> None:
    unpacked(build([CONFLUENT, NODE], folder), tmp_path)
    path = f"{bare_python(tmp_path / 'python')}:{PATH}"
    for program in (CONFLUENT, NODE):
        done = run(tmp_path, *rewritten(program.command), "--help", PATH=path)
        assert (done.returncode, done.stderr) == (0, "")
    where = "import sys, numpy, hydra; print(numpy.__file__, hydra.__file__)"
    for module in run(tmp_path, "python", "-c", where, PATH=path).stdout.split():
        assert Path(module).is_relative_to(tmp_path / "shared")


def test_groups_compile_nothing_that_they_import(sandbox: Path) -> None:
    """Agents keep nothing of what they compile, so each of their groups would do it again."""
    done = run(sandbox, "python", "-vc", "import hydra.zmqtest.pyzmq")
    loaded = [line for line in done.stderr.splitlines() if line.startswith("# code object from ") and "hydra-" in line]
    assert any("hydra/client/__pycache__/process_group." in line for line in loaded)
    assert any("numpy/__pycache__/__init__." in line for line in loaded)
    assert [line for line in loaded if line.endswith(".py")] == []


def test_kafka_python_finds_its_checksums_in_the_archive(folder: Path, tmp_path: Path) -> None:
    unpacked(build([KAFKA], folder), tmp_path)
    which = (
        "import crc32c; from kafka.record.default_records import calc_crc32c;"
        "print(calc_crc32c.__defaults__ == (crc32c.crc32c,), crc32c.__file__)"
    )
    in_c, where = run(tmp_path, "python", "-W", "ignore", "-c", which).stdout.split()
    assert in_c == "True"
    assert Path(where).is_relative_to(tmp_path / "shared")


def test_further_files_are_in_the_package_and_count(artifact: Artifact, folder: Path, tmp_path: Path) -> None:
    with_a_jar = replace(PYZMQ, files={"conf/kafka/jars/a.jar": tmp_path / "a.jar"})
    (tmp_path / "a.jar").write_text("one")
    first = build([with_a_jar], folder)
    (tmp_path / "a.jar").write_text("two")
    second = build([with_a_jar], folder)
    assert len({artifact.digest, first.digest, second.digest}) == 3
    unpacked(second, tmp_path)
    where = "import hydra, pathlib; print((pathlib.Path(hydra.__file__).parent / 'conf/kafka/jars/a.jar').read_text())"
    assert run(tmp_path, "python", "-c", where).stdout == "two\n"


@pytest.mark.tier("test")
def test_groups_of_an_agent_share_an_unpacked_copy_and_the_sandbox_has_none(artifact: Artifact, tmp_path: Path) -> None:
    words = ["/bin/sh", RUNNER, "python", "-c", "import hydra; print(hydra.__file__)"]
    env = {"PATH": PATH, "TMPDIR": str(tmp_path)}
    both = [
        subprocess.Popen(words, cwd=unpacked(artifact, tmp_path / name), env=env, stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    first, second = (process.communicate(timeout=LONG_S)[0] for process in both)
    assert first == second != ""
    shared = tmp_path / f"hydra-{os.getuid()}"
    assert shared.stat().st_mode & 0o777 == 0o700
    assert Path(first.strip()).is_relative_to(shared / artifact.digest)
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [RUNNER]


def test_a_shared_folder_of_somebody_else_is_not_used(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"hydra-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    sandbox = unpacked(artifact, tmp_path / "sandbox")
    done = run(sandbox, "python", "-c", "import hydra; print(hydra.__file__)", TMPDIR=str(tmp_path))
    assert Path(done.stdout.strip()).is_relative_to(sandbox / "program")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.tier("test")
def test_another_python_is_refused_in_one_line(sandbox: Path, tmp_path: Path) -> None:
    tool(tmp_path / "python3", '[ "$1" = --version ] && echo Python 3.8.1 && exit 0\nexit 1')
    for name in ("uname", "dirname"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    done = run(sandbox, "python", "-c", "print(1)", PATH=str(tmp_path))
    assert done.returncode == 78
    assert f"this agent has no Python {MINOR}, which the controller runs (python3 here: Python 3.8.1)" in done.stderr


def test_a_python_is_looked_for_once_for_each_path(artifact: Artifact, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    tool(tools / f"python{MINOR}", f'echo "$@" >>{tmp_path}/started\nexec {sys.executable} "$@"')
    for n, path in enumerate([f"{tools}:{PATH}", f"{tools}:{PATH}", f"{tools}:{tools}:{PATH}"]):
        done = run(unpacked(artifact, tmp_path / str(n)), "python", "-c", "print(7)", PATH=path, TMPDIR=str(tmp_path))
        assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")
        assert (tmp_path / "started").read_text().count("-ISc") == (1, 1, 2)[n]


def test_another_machine_and_another_archive_are_refused(sandbox: Path, tmp_path: Path) -> None:
    tool(tmp_path / "uname", "echo riscv64")
    done = run(sandbox, "python", "-c", "1", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 78
    assert f"this agent is riscv64; the archive was built on {platform.machine()}" in done.stderr
    done = run(sandbox, "python", "-c", "1", HYDRA_ARTIFACT="0123")
    assert done.returncode == 78
    assert "the run needs 0123: make the copy that you serve again" in done.stderr


def test_a_native_client_needs_a_glibc_that_is_new_enough_and_no_python(folder: Path, tmp_path: Path) -> None:
    program = Path("/bin/true").resolve()
    assert glibc_needed([program]) >= (2, 2)
    fake = tmp_path / "hydra-client"
    fake.write_bytes(program.read_bytes())
    fake.chmod(0o755)
    native = build([Program((str(fake), "zmq-sub"), {})], folder)
    with tarfile.open(native.path) as tar:
        assert sorted(tar.getnames()) == [RUNNER, "program.tar.gz"]
        tar.extractall(tmp_path, filter="tar")
    assert run(tmp_path, *rewritten((str(fake), "zmq-sub"))).returncode == 0
    script = (tmp_path / RUNNER).read_text()
    needed = ".".join(map(str, glibc_needed([program])))
    (tmp_path / RUNNER).write_text(script.replace(f"'{needed}'", "'2.999'"))
    done = run(tmp_path, "hydra-client")
    assert done.returncode == 78
    assert "the native clients need" in done.stderr


@pytest.mark.tier("test")
def test_a_program_is_named_as_the_archive_has_it() -> None:
    assert list(rewritten(PYZMQ.command)) == ["python", "-m", "hydra.zmqtest.pyzmq", "zmq-sub"]
    assert list(rewritten(("/opt/x/hydra-client", "zmq-sub"))) == ["hydra-client", "zmq-sub"]


def test_only_who_knows_the_path_gets_it_and_nothing_else_is_served(artifact: Artifact) -> None:
    with closing(ArtifactServer(artifact, HERE)) as server, closing(ArtifactServer(artifact, HERE)) as other:
        url = urlsplit(server.url)
        assert url.path != urlsplit(other.url).path
        assert url.path.endswith(artifact.name)
        connection = http.client.HTTPConnection(url.netloc, timeout=SOON_S)
        for method, target, status, size in (
            ("GET", url.path, 200, artifact.path.stat().st_size),
            ("HEAD", url.path, 200, 0),
            ("GET", f"/x/{artifact.name}", 404, None),
            ("GET", "/", 404, None),
            ("GET", f"{url.path}/../../etc/passwd", 404, None),
            ("POST", url.path, 501, None),
        ):
            connection.request(method, target)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == status, (method, target)
            if size is not None:
                assert len(body) == size
                assert answer.getheader("Content-Length") == str(artifact.path.stat().st_size)
                assert answer.getheader("ETag") == f'"{artifact.sha256}"'
        connection.close()


def test_an_address_of_somebody_else_is_refused(artifact: Artifact) -> None:
    with pytest.raises(ClusterError, match="name an address of this machine"):
        ArtifactServer(artifact, "192.0.2.1")
