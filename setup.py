"""Copy conf/ into the package `experiments` of a wheel; pyproject.toml says everything else."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConf(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # an editable installation reads the checkout's
            conf = Path(self.build_lib) / "experiments" / "conf"
            shutil.copytree("conf", conf, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithConf})
