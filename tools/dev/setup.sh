# Sourced by tools/run and tools/test: installs what is missing and builds. When nothing is missing
# it costs a package query and an empty ninja run, well under a second.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=$root/.deps

# What one asks the distribution for; names are the same in Debian 12 and 13.
packages=(
  g++ cmake ninja-build pkg-config
  libtbb-dev libyaml-cpp-dev libcli11-dev libmuparser-dev librandom123-dev
  libxxhash-dev libfmt-dev nlohmann-json3-dev zlib1g-dev
  python3 python3-venv ca-certificates
)
# What only tests and benchmarks need.
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev)

exit_needs_root=3
exit_tampered=4

say() { echo "llmsweep: $*" >&2; }

fail() {
  say "$1"
  exit "${2:-1}"
}

# logged NAME COMMAND...: runs quietly; on failure shows the end of its log.
logged() {
  local log=$deps/log/$1.log
  shift
  mkdir -p "$deps/log"
  if ! "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    say "failed: $*"
    say "the whole log is in $log"
    return 1
  fi
}

# Only one set-up at a time in this tree: a second call waits, then finds everything done.
lock_tree() {
  if ! mkdir -p "$deps" 2>/dev/null || ! : 2>/dev/null >>"$deps/lock"; then
    fail "cannot write to $deps; this needs a copy of the project of your own"
  fi
  exec 9>"$deps/lock"
  flock -n 9 || {
    say "waiting for another set-up in this folder"
    flock 9
  }
}

unlock_tree() { exec 9>&-; }

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p') || true
  printf '%s\n' "$@" | grep -vxF -f <(printf '%s\n' $installed) || true
}

apt_install() {
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
  [ "$(id -u)" = 0 ] || apt=(sudo -n "${apt[@]}")
  # A fresh machine has no package lists and an old one has stale ones: update only then.
  "${apt[@]}" install -y --no-install-recommends "$@" ||
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; }
}

# need_packages NAME...: installs those that are missing, or says whom to ask.
need_packages() {
  command -v dpkg-query >/dev/null || return 0 # another distribution: CMake says what it lacks
  local missing
  missing=($(missing_packages "$@"))
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    say "these packages are missing, and this user may not install them:"
    echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    say "ask for that line to be run, then call this again"
    exit "$exit_needs_root"
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  logged apt apt_install "${missing[@]}"
}

# A Python of our own under .deps/py; the system's is asked first, since only it has python3-venv. -I here and below: these
# scripts are called from any folder, and a zipfile.py or a pip.py that lies there is not to be run.
need_venv() {
  [ -x "$deps/py/bin/pip" ] && return 0
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  rm -rf "$deps/py"
  logged venv "$python" -I -m venv "$deps/py"
}

# pinned NAME COMMAND...: a call of pip. Where a package cannot be had, another place may have it; but a file that is not the
# one whose hash is pinned ends the whole set-up, so that nobody meets it as a mere inconvenience.
pinned() {
  local name=$1
  logged "$@" && return 0
  ! grep -q 'DO NOT MATCH THE HASHES' "$deps/log/$name.log" || tampered
  return 1
}

tampered() {
  say "a package is not the one that was pinned: it was cut short on its way here, or somebody changed it"
  fail "try again; if it stays so, do not use the place that packages come from, and tell who keeps it" "$exit_tampered"
}

# unless_tampered COMMAND...: for what set-up can do without. What was tampered with ends set-up all the same.
unless_tampered() {
  local status=0
  "$@" || status=$?
  [ "$status" != "$exit_tampered" ] || exit "$exit_tampered"
  return "$status"
}

# need_pins SET WHAT: installs the Python packages of tools/dev/SET.txt, unless these very ones are there.
need_pins() {
  local wanted=$root/tools/dev/$1.txt
  cmp -s "$wanted" "$deps/py/$1.txt" && return 0
  need_venv || return 1
  say "installing $2"
  pinned "pip-$1" "$deps/py/bin/python" -I -m pip install --disable-pip-version-check --no-compile --only-binary=:all: \
    --require-hashes -r "$wanted" && cp "$wanted" "$deps/py/$1.txt"
}

need_test_python() { need_pins requirements "the tests' Python packages"; }

# The chart library that 'llmsweep report' puts into its page. A sweep runs without it, so a machine that cannot
# fetch it is only told.
need_charts() {
  [ -d "$deps/charts" ] && return 0
  unless_tampered "$root/tools/dev/charts.sh" || say "the report's chart library could not be had; 'llmsweep report' will say how to get it"
}

# What only some tests need, a function each: tools/test --with browser calls need_browser. They run in a condition,
# so each step says what follows where it fails.
need_browser() {
  need_packages chromium fonts-dejavu-core && need_pins browser "what drives the browser"
}
need_python() { need_pins python "what drives the Python package: an optimiser"; }
# Ray first: who may not install packages of the system can have it all the same.
need_cluster() {
  need_pins cluster "Ray"
  local ray=$?
  need_packages slurm-wlm munge && return $ray
}

# A Debian with nothing in it, of this machine's release, to try packages in.
need_package() {
  [ -d "$deps/debian" ] && return 0
  need_packages debootstrap || return 1
  local release
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
  say "making a Debian tree to try packages in"
  rm -rf "$deps/debian.new"
  # Under a minute where packages can be had; elsewhere it would go on asking for them.
  logged debootstrap timeout 300 debootstrap --variant=minbase "$release" "$deps/debian.new" && mv "$deps/debian.new" "$deps/debian"
}

# need_extra NAME: where it cannot be had, the tests that need it say so and are skipped.
need_extra() {
  unless_tampered eval "(need_$1)" || say "not everything for --with $1 could be had; tests that miss it are skipped and say so"
}

# Arrow and Parquet for C++: see tools/dev/cmake/ArrowParquet.cmake for the three places.
need_arrow() {
  local route=${LLMSWEEP_ARROW:-auto}
  case $route in
    auto)
      [ -d "$deps/arrow-wheel" ] && return 0
      [ -d "$deps/arrow-source" ] && return 0
      pkg-config --atleast-version=15 arrow parquet 2>/dev/null && return 0
      unless_tampered "$root/tools/dev/arrow_wheel.sh" && return 0
      say "the wheel could not be had; building Arrow from source instead"
      "$root/tools/dev/arrow_source.sh"
      ;;
    system) ;;
    wheel | source) [ -d "$deps/arrow-$route" ] || "$root/tools/dev/arrow_$route.sh" ;;
    *) fail "LLMSWEEP_ARROW is '$route'; it can be auto, system, wheel or source" 2 ;;
  esac
}

# The oldest CMake that reads CMakeLists.txt, which names it. An older one would complain about presets.
need_cmake() {
  local oldest have
  oldest=$(sed -n 's/^cmake_minimum_required(VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
  have=$(cmake --version 2>/dev/null | sed -n '1s/^cmake version \([0-9.]*\).*/\1/p') || true
  [ -n "$have" ] || fail "there is no CMake here; this needs $oldest or newer"
  [ "$(printf '%s\n' "$oldest" "$have" | sort -V | head -n 1)" = "$oldest" ] ||
    fail "CMake $have ($(command -v cmake)) is too old; this needs $oldest or newer, as Debian 12 and Ubuntu 24.04 have it; pip has newer ones, too"
}

# build PRESET TARGET: configures when needed, then lets ninja do what is left. Who only runs sweeps needs no
# test libraries; a folder that has had tests keeps them.
build() {
  local preset=$1 target=$2 folder=$root/build/$1 route=${LLMSWEEP_ARROW:-auto} tests=ON
  local cache=$folder/CMakeCache.txt
  if [ "$target" = llmsweep ] && ! grep -qsx "LLMSWEEP_BUILD_TESTS:BOOL=ON" "$cache"; then tests=OFF; fi
  if [ ! -f "$folder/build.ninja" ] || ! grep -qx "LLMSWEEP_ARROW:STRING=$route" "$cache" ||
    ! grep -qx "LLMSWEEP_BUILD_TESTS:BOOL=$tests" "$cache"; then
    need_cmake
    mkdir -p "$folder"
    (cd "$root" && logged "configure-$preset" cmake --preset "$preset" -DLLMSWEEP_ARROW="$route" \
      -DLLMSWEEP_BUILD_TESTS="$tests")
    say "building ($preset); the first time takes some minutes"
  fi
  # On a terminal ninja rewrites one line; in a log only what went wrong is worth keeping.
  local quiet=--quiet
  [ -t 2 ] && quiet=
  cmake --build "$folder" --target "$target" -- $quiet >&2
}
