#!/usr/bin/env bash
# Builds Arrow and Parquet as static libraries into .deps/arrow-source, from the source package of a
# newer suite of the host's own distribution. That suite is read through an apt configuration of its
# own under .deps: nothing of it is installed, and the host's configuration is not touched.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

suites=(forky sid) # the first Debian release that has apache-arrow, then whatever comes after it
build_packages=(libthrift-dev libboost-dev rapidjson-dev libzstd-dev)

need_packages "${packages[@]}" "${build_packages[@]}"
need_cmake

# The mirror the host already uses for its own release.
host_mirror() {
  local release
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' |
    awk -v release="$release" '!seen && ($1 == release || $1 == "stable") { print $2; seen = 1 }'
}

# apt with its own sources, lists and cache; only which packages are installed is the host's.
local_apt() {
  apt-get -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State="$apt/state" -o Dir::State::Status=/var/lib/dpkg/status -o Dir::Cache="$apt/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@"
}

# Arrow needs a newer xsimd than a stable release has. That is headers only, so its package is
# unpacked beside the source, not installed.
fetch_files() {
  (cd "$work" && local_apt source --download-only apache-arrow && local_apt download libxsimd-dev)
}

fetch_source() {
  local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg suite trusted=
  mirror=$(host_mirror)
  [ -n "$mirror" ] || fail "no mirror of this release in the host's apt configuration"
  [ -f "$keyring" ] && trusted="[signed-by=$keyring]"
  for suite in "${suites[@]}"; do
    rm -rf "$apt"
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    printf '%s\n' "deb-src $trusted $mirror $suite main" "deb $trusted $mirror $suite main" \
      >"$apt/sources.list"
    if logged arrow-apt local_apt update && logged arrow-fetch fetch_files; then
      return 0
    fi
  done
  fail "no suite of this distribution has apache-arrow's source and libxsimd-dev (tried: ${suites[*]})"
}

work=$deps/arrow-source-build
apt=$deps/apt
rm -rf "$work"
mkdir -p "$work/arrow" "$work/xsimd"

say "fetching Arrow's source"
fetch_source
tar -xzf "$work"/apache-arrow_*.orig.tar.gz -C "$work/arrow" --strip-components=1
dpkg-deb -x "$work"/libxsimd-dev_*.deb "$work/xsimd"

say "building Arrow; this takes some minutes, once"
# Parquet with zstd, and nothing else. Unity and no SIMD variants: half the compile time, and writing
# result rows does not notice.
logged arrow-configure cmake -G Ninja -S "$work/arrow/cpp" -B "$work/build" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$deps/arrow-source" -DCMAKE_INSTALL_LIBDIR=lib \
  -DARROW_BUILD_SHARED=OFF -DARROW_BUILD_STATIC=ON \
  -DARROW_PARQUET=ON -DARROW_WITH_ZSTD=ON -DARROW_JEMALLOC=OFF -DARROW_MIMALLOC=OFF \
  -DARROW_SIMD_LEVEL=NONE -DARROW_RUNTIME_SIMD_LEVEL=NONE -DCMAKE_UNITY_BUILD=ON \
  -DARROW_DEPENDENCY_SOURCE=SYSTEM -Dxsimd_ROOT="$work/xsimd/usr" \
  -DXSIMD_ENABLE_XTL_COMPLEX=OFF
logged arrow-build cmake --build "$work/build"

# Installed aside and moved whole: if the folder is there, it is complete.
DESTDIR=$work/out logged arrow-install cmake --install "$work/build"
mv "$work/out$deps/arrow-source" "$deps/arrow-source"
rm -rf "$work" "$apt"
