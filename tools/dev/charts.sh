#!/usr/bin/env bash
# Takes the report's chart library, one JavaScript file, out of a wheel that carries it, into .deps/charts.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# The wheel's version and hash are in charts.txt; this is the file in it that we looked at.
file=panel/dist/bundled/echarts/echarts@6.0.0/dist/echarts.min.js
hash=baa8dfe7e1d9336b98e8986ba7e20ea15e7cdbea1ef42a59d59478632fa45a1d

need_venv
work=$(mktemp -d "$deps/charts.XXXXXX")
trap 'rm -rf "$work"' EXIT

say "fetching the report's chart library"
pinned charts "$deps/py/bin/python" -I -m pip download --disable-pip-version-check --no-deps --require-hashes \
  --only-binary=:all: --dest "$work" -r "$root/tools/dev/charts.txt"

mkdir "$work/out"
"$deps/py/bin/python" -I - "$work" "$file" <<'PYTHON'
import glob, pathlib, sys, zipfile

work, file = sys.argv[1:]
with zipfile.ZipFile(glob.glob(f"{work}/*.whl")[0]) as wheel:
    pathlib.Path(work, "out", "echarts.min.js").write_bytes(wheel.read(file))
PYTHON
echo "$hash  $work/out/echarts.min.js" | sha256sum --check --status || tampered

# Moved whole: if the folder is there, it is complete.
rm -rf "$deps/charts"
mv "$work/out" "$deps/charts"
