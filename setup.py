"""The part of the packaging that pyproject.toml cannot say: conf/ is installed as the package hydra.conf."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["hydra", "hydra.*"]), "hydra.conf"],
    package_dir={"hydra.conf": "conf"},
    package_data={
        "hydra.conf": ["**/*"],
        "hydra": ["py.typed"],
        "hydra.jupyter": ["*.ipynb", "*.css", "template/**/*"],
    },
)
