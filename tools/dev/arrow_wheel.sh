#!/usr/bin/env bash
# Takes Arrow's C++ libraries and headers out of the pyarrow wheel, into .deps/arrow-wheel.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# The version and the hashes of its files are those of requirements.txt.
pinned=$(sed -n '/^pyarrow==/,/[^\\]$/p' "$root/tools/dev/requirements.txt")
version=$(sed -n 's/^pyarrow==\([^ ]*\).*/\1/p' <<<"$pinned")
# No Python ever loads this copy, so one CPython tag serves every host, whatever its own Python is.
tag=3.12
platform=manylinux_2_28_$(uname -m)

need_venv
work=$(mktemp -d "$deps/arrow-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT

say "fetching Arrow $version (pyarrow wheel, $platform)"
echo "$pinned" >"$work/pyarrow.txt"
pinned arrow-wheel "$deps/py/bin/python" -I -m pip download --disable-pip-version-check --no-deps --require-hashes \
  --only-binary=:all: --implementation cp --python-version "$tag" --platform "$platform" \
  --dest "$work" -r "$work/pyarrow.txt"

"$deps/py/bin/python" -I - "$work" <<'PYTHON'
import glob, re, sys, zipfile

work = sys.argv[1]
with zipfile.ZipFile(glob.glob(f"{work}/*.whl")[0]) as wheel:
    for info in wheel.infolist():
        # libarrow.so.2600 and libparquet.so.2600, and both header trees; nothing of Python.
        library = re.fullmatch(r"pyarrow/(lib(?:arrow|parquet)\.so\.\d+)", info.filename)
        header = re.fullmatch(r"pyarrow/include/((?:arrow|parquet)/.+)", info.filename)
        if library:
            info.filename = f"out/lib/{library[1]}"
        elif header and not header[1].startswith("arrow/python/"):
            info.filename = f"out/include/{header[1]}"
        else:
            continue
        wheel.extract(info, work)
PYTHON

# Moved whole: if the folder is there, it is complete.
mv "$work/out" "$deps/arrow-wheel"
