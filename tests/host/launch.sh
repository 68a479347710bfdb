#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# launch.sh PROGRAM SUNDOG: a run whose program launched a kernel of its own on
# the host device fails, and names the kernel.
set -eu
program=$1 sundog=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() { # status, words that stand on stderr: for "$program" $what
  "$sundog" run -n 1 --device host -- "$program" "$what" \
    >"$scratch/out" 2>"$scratch/err" && status=0 || status=$?
  cat "$scratch/err"
  grep -qx done "$scratch/out"
  if [ "$1" = 0 ]; then [ $status = 0 ]; else [ $status != 0 ]; fi
  shift
  for word; do grep -q "$word" "$scratch/err"; done
}
what=launch
check 1 SDG-721 'kernel .*add.* is not launched'
[ "$(grep -c 'is not launched' "$scratch/err")" = 1 ]
what=ask
check 1 SDG-721 'kernel .*scale.* is not launched'
what=stranger
check 0
what=nothing
check 0
[ ! -s "$scratch/err" ]
