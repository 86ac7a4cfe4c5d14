"""Makes the wheel: the package, and the program with its library of specs where the checkout has been built.

A build backend of pip (PEP 517) in one file, so that an installation needs no other package and no network.
"""

import base64
import hashlib
import os
import pathlib
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("LLMSWEEP_BUILD", HERE.parents[1] / "build" / "release"))
NAME, VERSION = "llmsweep", "0.1.0"
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Sweeps of LLM systems from Python: run, read, compare, evaluate
Requires-Python: >=3.10
Requires-Dist: pyarrow>=15
"""


def get_requires_for_build_wheel(config_settings=None):
    return []


def program_files(scratch):
    """What 'cmake --install' lays out, or nothing where the program has not been built."""
    if not (BUILD / "llmsweep").exists():
        return []
    subprocess.run(["cmake", "--install", BUILD, "--prefix", scratch], check=True, stdout=subprocess.DEVNULL)
    root = pathlib.Path(scratch)
    return sorted((file, f"{NAME}/program/{file.relative_to(root)}") for file in root.rglob("*") if file.is_file())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        program = program_files(scratch)
        tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}" if program else "py3-none-any"
        wheel = f"{NAME}-{VERSION}-{tag}.whl"
        package = sorted((file, f"{NAME}/{file.name}") for file in (HERE / NAME).iterdir() if file.suffix in (".py", ".typed"))
        info = f"{NAME}-{VERSION}.dist-info"
        record = []
        # Libraries are most of it: the least compression takes a tenth of the time of the usual one.
        with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            def add(name, data, mode=0o644):
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100000 | mode) << 16
                archive.writestr(entry, data, compresslevel=1)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{name},sha256={digest},{len(data)}")

            for file, name in package + program:
                add(name, file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
            add(f"{info}/METADATA", METADATA.encode())
            pure = "false" if program else "true"
            add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: llmsweep\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode())
            record.append(f"{info}/RECORD,,")
            archive.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
        return wheel
