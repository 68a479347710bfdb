#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# driver.sh SOURCE SUNDOG TOOLKIT COMPILER...: a program that is linked with
# -lcuda, and finds no driver by itself, starts on the host device.
set -eu
source=$1 sundog=$2 toolkit=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$@" "$source" -o "$scratch/program" -L"$toolkit/lib64/stubs" -lcuda -rdynamic
unset LD_LIBRARY_PATH LD_PRELOAD
LD_BIND_NOW=1 "$sundog" run -n 1 --device host -- "$scratch/program" |
  grep -qx 'sundog host device'
