# shellcheck shell=bash disable=SC2034,SC2016 # used by the tests; other shells
# SPDX-License-Identifier: Apache-2.0
# TAP for tests of the command: each case is a function that is named by
# behaviour.
# Sourced with the paths of the command and of a library to preload.
#
# Every case runs in its own folder $work. $sundog is the command, in the layout
# of a build folder; no SUNDOG_* variables are set; $TMPDIR is for private
# folders and must be empty afterwards.
set -u
command_built=$(realpath "$1") library_built=$(realpath "$2")
top=$(mktemp -d "${TMPDIR:-/tmp}/sundog-test-XXXXXX")
trap 'rm -rf "$top"' EXIT
unset XDG_RUNTIME_DIR LD_PRELOAD OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
for name in $(compgen -e | grep ^SUNDOG_); do unset "$name"; done
export LC_ALL=C
# Leaks of the command do not matter, because it ends by exec. Programs that a test
# kills end by the signal, which AddressSanitizer would turn into status 1.
ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0:verify_asan_link_order=0:handle_segv=0
export ASAN_OPTIONS=$ASAN_OPTIONS:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0

# sanitized: the command is instrumented, so it needs more memory and time.
sanitized() { grep -qaE 'lib(asan|tsan)[.]so' "$command_built"; }

# layout FOLDER: copies the command and its library, in the layout of a build.
layout() {
  mkdir -p "$1/tools" "$1/interpose" "$1/src/host/lib"
  cp "$command_built" "$1/tools/sundog"
  cp "$library_built" "$1/interpose/libsundog.so"
  local pmix
  pmix=$(dirname "$command_built")/../interpose/sundog-pmix
  [ ! -e "$pmix" ] || cp "$pmix" "$1/interpose/sundog-pmix"
}
layout "$top/build"

# Makes a rank count as matched: writes the report that the library would write.
matched='printf "{\"rank\":0,\"matched\":1,\"calls\":[]}" >"$SUNDOG_REPORT/rank-$SUNDOG_RANK.json"'

# run STATUS COMMAND...: runs the command, which must end with STATUS; its
# output is in $work/out and $work/err.
run() {
  local expected=$1 status=0
  shift
  "$@" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" -eq "$expected" ] && return 0
  echo "# status $status, not $expected: $*"
  sed 's/^/#   /' "$work/out" "$work/err"
  return 1
}
says() { # FILE TEXT: the file has the text
  grep -qF -- "$2" "$work/$1" && return 0
  echo "# '$2' is not in $1:"
  sed 's/^/#   /' "$work/$1"
  return 1
}
lacks() { # FILE TEXT: the file has not the text
  ! grep -qF -- "$2" "$work/$1" && return 0
  echo "# '$2' is in $1"
  return 1
}
silent() { # FILE: nothing is in it
  [ ! -s "$work/$1" ] && return 0
  echo "# $1 is not empty:"
  sed 's/^/#   /' "$work/$1"
  return 1
}
gone() { # PID...: these processes have ended
  local pid
  for pid; do
    if kill -0 "$pid" 2>/dev/null; then
      echo "# process $pid survived"
      kill -9 "$pid"
      return 1
    fi
  done
}

# Waits until no private folder is left: hydra does not wait for ranks that it
# ends, whose guards remove them.
folders_wait() {
  local try=0
  until [ -z "$(ls -A "$TMPDIR")" ]; do
    [ $((try += 1)) -lt 600 ] || return 1
    sleep 0.1
  done
}

# cases NAME...: runs each function and prints the plan.
cases() {
  local number=0 failed=0 name left status
  echo "1..$#"
  for name; do
    number=$((number + 1))
    work=$top/$number # short: a socket's path is
    export TMPDIR=$work/tmp
    sundog=$top/build/tools/sundog
    mkdir -p "$TMPDIR"
    # Not in a condition, where `set -e` has no effect.
    (
      cd "$work" || exit 1
      set -e
      "$name"
    ) 2>"$work/stderr"
    status=$?
    sed 's/^/#! /' "$work/stderr"
    left=$(ls -A "$work/tmp")
    [ -z "$left" ] || echo "# left behind: $left"
    if [ $status -eq 0 ] && [ -z "$left" ]; then
      echo "ok $number - $name"
    else
      echo "not ok $number - $name"
      failed=1
    fi
  done
  return $failed
}
