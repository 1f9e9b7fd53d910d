"""The wheel carries the loader and nothing else, and asks for numpy alone."""

import subprocess
import sys
import zipfile
from email import message_from_string
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def test_the_wheel_carries_olmo_loader_only(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*build, "--directory", str(tmp_path)], cwd=CHECKOUT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = next(name for name in names if name.endswith("/METADATA"))
        requires = message_from_string(file.read(metadata).decode()).get_all("Requires-Dist") or []
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"olmo_loader"}
    assert "olmo_loader/py.typed" in names
    assert not [name for name in names if name.endswith("entry_points.txt")]
    assert [item.split(">")[0] for item in requires if "extra ==" not in item] == ["numpy"]
