#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples, like a user has them: a copy in another folder, built by their
# Makefile, and run by the commands at their heads and in the README.
#
# usage: test_examples.sh SUNDOG LIBSUNDOG LIBCUDNN EXAMPLES README CUDA_HOME
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/../harness.sh"
host=$(dirname "$(realpath "$3")") examples=$(realpath "$4") readme=$(realpath "$5")
export CUDA_HOME=$6 OMP_NUM_THREADS=1
# Users do not have this variable, which the linker would follow.
unset LD_LIBRARY_PATH
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
# Examples are copied away from the header.
export HEADER_HOME=${examples%/*}/src
# `sundog` is in PATH.
PATH=$top/build/tools:$PATH

# copy: builds a copy of the examples in a folder with a blank in its name, and
# changes to it.
copy() {
  mkdir 'my examples'
  cd 'my examples' || return
  cp "$examples"/*.[ch] "$examples"/*.rules "$examples"/Makefile .
  run 0 make
  lacks err warning
  lacks out 'left out'
}
# commands FILE: prints the commands in a program's comment, one on each line.
commands() {
  sed -n '1d; s/^ \* \([A-Z][^:]*: \)\? *\(sundog .*\)/\2/p
    s/^ \*  *\(\.\/.*\)/\1/p; /\*\//q' "$1" |
    sed -e 's, \*/$,,' -e ':a' -e '/\\$/N; s/ *\\\n/ /; ta'
}
# command_line LINE: runs it on the host device.
command_line() { bash -c "${1/#sundog run/sundog run --device host}"; }
# result: prints the line that all ranks of the last run printed.
result() { sort -u "$work/out" | grep '[0-9]'; }
# same RIGHT LINE: checks that words are equal, and numbers to a thousandth.
same() {
  [ "$(wc -l <<<"$2")" = 1 ] && paste -d '\n' <(tr ' ' '\n' <<<"$1") \
    <(tr ' ' '\n' <<<"$2") | awk 'NR % 2 { a = $0; next }
      a != $0 { if (a + 0 == 0) exit 1; off = $0 / a - 1
        if (off * off > 1e-6) exit 1 }' && return
  echo "# '$2', not '$1'"
  return 1
}

every_command_prints_what_one_process_prints() {
  local name ranks right line expected
  copy
  run 0 sundog run --device host -n 1 -- ./jacobi --sample f.npy
  run 0 sundog run --device host -n 1 -- ./shallow --sample h.npy
  for name in jacobi cnn transformer shallow; do
    [ "$(wc -l <$name.c)" -lt 150 ]
    expected=$(sed -n 's/^ \* *"\(.*\)".*/\1/p' $name.c)
    commands $name.c >"$work/commands"
    grep -q -- '-n 4' "$work/commands"
    # On one rank it prints what its comment says.
    right=
    for ranks in 1 2 3 4; do
      while read -r line; do
        line=${line//-n 4/-n $ranks}
        line=${line//0-3/0-$((ranks - 1))}
        [ $ranks = 1 ] || [[ $line != *'-n 1'* ]] || continue
        [ $ranks -gt 1 ] || [[ $line = *'-n 1'* && $line != *rules* ]] || continue
        run 0 command_line "$line"
        [[ $line = 'sundog run'* ]] || continue
        [ -n "$right" ] || right=$(result)
        same "$right" "$(result)"
        same "$expected" "$(result)"
        [[ $line != *jacobi*whole* ]] || run 0 sundog diff --rtol 1e-6 right.npy u.npy
        [[ $line != *shallow*whole* ]] || cmp right.npy end.npy
      done <"$work/commands"
      # The files of jacobi's ranks together equal that of one process.
      if [ $name = jacobi ]; then
        [ $ranks -gt 1 ] || cp u.npy right.npy
        run 0 sundog diff --rtol 1e-6 right.npy u.npy
      fi
      # Those of shallow do, bit for bit.
      if [ $name = shallow ]; then
        [ $ranks -gt 1 ] || cp end.npy right.npy
        cmp right.npy end.npy
      fi
    done
  done
}
a_solver_without_cudnn_writes_what_one_process_writes() {
  local line ranks expected
  copy
  expected=$(sed -n 's/^ \* *"\(.*\)".*/\1/p' heat.c)
  [ -n "$expected" ]
  sed -n 's/^ \* One process: *//p' heat.c >"$work/commands"
  commands heat.c >>"$work/commands"
  grep -q '^\./heat' "$work/commands"
  # Without sundog.
  run 0 env LD_LIBRARY_PATH="$host" bash -c "$(head -1 "$work/commands")"
  [ "$(result)" = "$expected" ]
  cp u.npy right.npy
  for ranks in 1 4 7; do
    rm u.npy
    while read -r line; do
      line=${line//-n 4/-n $ranks}
      run 0 command_line "${line//0-3/0-$((ranks - 1))}"
      [[ $line != *'run'* ]] || [ "$(result)" = "$expected" ]
    done < <(grep '^sundog' "$work/commands")
    run 0 cmp right.npy u.npy
  done
}
they_are_built_with_the_host_device_s_libraries() {
  sanitized && return # the linker warns of the sanitizer's runtime
  cp -r "$examples" copy
  cd copy || return
  run 0 make clean all LDFLAGS="-L'$host' -Wl,-rpath,'$host'"
  lacks err warning
  lacks out 'left out'
  # Without sundog's command, like any program.
  run 0 ./cnn
  says out 'after 60 steps'
}
a_piece_alone_prints_something_else() {
  # Otherwise the other cases would show nothing.
  local right
  copy
  run 0 sundog run --device host -n 1 -- ./jacobi --sample f.npy
  run 0 sundog run --device host -n 1 -- ./jacobi f.npy u.npy
  right=$(result)
  run 0 sundog split -n 2 f.npy
  run 0 sundog run --device host -n 1 -- ./jacobi f.0.npy u.0.npy
  [ "$right" != "$(result)" ]
}
the_readme_s_five_minutes_are_true() {
  local line
  copy
  sed -n '/^## Five minutes/,/^## Shard/s/^    \([^ ].*\)/\1/p' "$readme" |
    sed 's/  *#.*//' >"$work/lines"
  grep -q '^sundog inspect' "$work/lines"
  grep -q '^sundog run -n 4' "$work/lines"
  while read -r line; do
    case $line in
    cd\ * | PATH=*) ;;
    make | sundog\ *) run 0 command_line "$line" </dev/null ;;
    'sundog: '*) says err "$line" ;;
    *) says out "$line" ;;
    esac
  done <"$work/lines"
}

cases every_command_prints_what_one_process_prints \
  a_solver_without_cudnn_writes_what_one_process_writes \
  they_are_built_with_the_host_device_s_libraries \
  a_piece_alone_prints_something_else the_readme_s_five_minutes_are_true
