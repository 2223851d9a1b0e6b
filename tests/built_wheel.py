"""The wheel of this checkout, and a virtual environment that has it alone; nothing is fetched from an index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from sysconfig import get_path

REPOSITORY = Path(__file__).parent.parent


def build_wheel(folder: Path) -> Path:
    """The wheel as `python -m build` makes it, by the same backend."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, REPOSITORY]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("iolens-*.whl")
    return wheel


def install_alone(wheel: Path, venv: Path) -> Path:
    """A fresh environment with the wheel; its dependencies are those of the running one. Returns its `bin`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True, capture_output=True)
    lend_dependencies(venv)
    return venv / "bin"


def lend_dependencies(venv: Path) -> None:
    """Let an environment import what the running one has; its own packages go first, and editable ones are not seen."""
    (packages,) = (venv / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{get_path('purelib')}\n", "utf-8")
