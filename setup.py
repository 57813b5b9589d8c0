"""The part of the packaging that pyproject.toml cannot say.

conf/ is installed as the package hydra.conf, and native/ is built into hydra/native/hydra-client where its packages are
there. The build never fails for want of the native client: it says what is missing and goes on.

scripts/wheels.py, which builds a client that runs on other machines as well, names it in HYDRA_WHEEL_CLIENT, and in
HYDRA_WHEEL_PLATFORM the platforms on which it runs.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from setuptools import Distribution, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

TREE = Path(__file__).resolve().parent
PORTABLE = os.environ.get("HYDRA_WHEEL_CLIENT", "")


def load_nativebuild() -> ModuleType:
    """hydra/native/build.py by its path: hydra is not installed yet, and need not be importable here."""
    spec = importlib.util.spec_from_file_location("nativebuild", TREE / "hydra" / "native" / "build.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("hydra/native/build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nativebuild = load_nativebuild()


class BuildPython(build_py):
    """Copies the modules, and builds the native client beside them."""

    def run(self) -> None:
        """Never fails for want of the native client."""
        super().run()
        if self.editable_mode:
            return  # the command compiles the client when it is first asked for
        reason = self.build_program(Path(self.build_lib) / "hydra" / nativebuild.PROGRAM)
        if reason:
            sys.stderr.write(f"hydra: without the native client (--client native): {reason}\n")

    def build_program(self, program: Path) -> str:
        """Why there is no native client, or ""."""
        if PORTABLE:
            nativebuild.install(Path(PORTABLE), program)
            return ""
        if not (TREE / "native" / "CMakeLists.txt").exists():
            return "there is no native/ in this tree"
        missing = nativebuild.missing()
        if missing:
            return f"building it needs: apt-get install {' '.join(missing)}"
        try:
            with nativebuild.locked(TREE) as folder:
                nativebuild.install(nativebuild.build(TREE / "native", folder), program)
        except nativebuild.BuildError as e:
            return str(e)
        return ""


class PlatformDistribution(Distribution):
    """With a program in it, a distribution is for this platform."""

    def has_ext_modules(self) -> bool:
        """Whether the native client will be part of it."""
        return bool(PORTABLE) or ((TREE / "native" / "CMakeLists.txt").exists() and not nativebuild.missing())


class Wheel(bdist_wheel):
    """For any Python: the program needs none."""

    def get_tag(self) -> tuple[str, str, str]:
        """The interpreter, its ABI, and the platform."""
        python, abi, platform = super().get_tag()
        if self.root_is_pure:
            return python, abi, platform
        return "py3", "none", os.environ.get("HYDRA_WHEEL_PLATFORM", platform)


setup(
    packages=[*find_packages(include=["hydra", "hydra.*"]), "hydra.conf"],
    package_dir={"hydra.conf": "conf"},
    package_data={
        "hydra.conf": ["**/*"],
        "": ["native-packages"],
        "hydra": ["py.typed"],
        "hydra.jupyter": ["*.ipynb", "*.css", "*.j2"],
        "hydra.serve": ["*.css"],
        "hydra.ssh": ["on_host/*.sh"],
    },
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildPython, "bdist_wheel": Wheel},
)
