#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog rules --check` prints what rules say, or all faults in them, without a
# run.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"
nets=$(realpath "$3")

# line NUMBER TEXT: checks that a fault of this line of net.rules has the text.
line() {
  grep -F "net.rules:$1: " "$work/err" | grep -qF -- "$2" && return 0
  echo "# no fault of line $1 with '$2':"
  sed 's/^/#   /' "$work/err"
  return 1
}
faults() { # NUMBER: so many were reported, and no more
  says err "$1 fault"
  [ "$(grep -c '^sundog: SDG-' "$work/err")" -eq "$1" ]
}

good_rules_are_shown_as_they_were_read() {
  cat >net.rules <<'END'
[mesh]
data = 2
y = 4
[local head]
match = N C 1 1
[shard field]
match = N C H>=64 W
op = conv* cudnnPooling*
split = N:data, H:y
parts = H:1,2,3,4
view = shard
END
  run 0 "$sundog" rules --check net.rules
  says out 'net.rules: 2 sections, for 8 ranks, data=2 y=4'
  says out '[local head] match N C 1 1'
  says out '[shard field] match N C H>=64 W, op conv* cudnnPooling*; split N:data in 2 (agree), H:y in 4 (1,2,3,4), view shard'
  silent err
  run 78 "$sundog" rules --check -n 4 net.rules
  line 1 'the mesh data=2,y=4 does not have 4 ranks'
  faults 1
}
functions_are_shown_as_they_were_read() {
  cat >own.rules <<'END'
[function flux]
arguments = in u, out w, int rows, int columns, int row0
tensor = u w: float [rows columns]
dims = H W
reach = H:0:1 W:all
border = H:wrap
offset = row0 H
stream = none
[function sums]
arguments = in u, int rows, int columns, out total, out most
tensor = u: float [rows columns]
tensor = total most: double []
dims = H W
reach = H:0 W:0
result = sum total, max most, mean return double
stream = none
[kernel wave*]
arguments = in u, out w, int rows, int columns
tensor = u w: float [rows columns]
dims = H W
reach = H:1 W:0
grid = y: 2 * (rows + 3) / 8 - (1 - columns), loop: columns
[shard field]
split = H
view = shard
END
  run 0 "$sundog" rules --check -n 2 own.rules
  says out '[function flux] in u[H W], out w[H W]; reach H:0:1 W:all; border H:wrap; offset row0 H'
  says out '[function sums] in u[H W], out total[1], out most[1]; reach H:0 W:0; result sum total, max most, mean return'
  says out '[kernel wave*] in u[H W], out w[H W]; reach H:1 W:0; grid y: 2 * (rows + 3) / 8 - (1 - columns), loop: columns'
  # Numbers without a sign would be compared as if they had one.
  sed 's/total most: double/total most: unsigned/' own.rules >unsigned.rules
  run 78 "$sundog" rules --check -n 2 unsigned.rules
  says err "SDG-108"
  says err 'the largest or smallest of unsigned numbers cannot be found'
  sed 's/view = shard/view = whole/' unsigned.rules >whole.rules
  run 78 "$sundog" rules --check -n 2 whole.rules
  says err 'the largest or smallest of unsigned numbers cannot be found'
}
every_fault_is_found_at_once() {
  cat >net.rules <<'END'
[mesh]
y = two
[shrad field]
match = N C Q>=64
op = conv foo
splt = H:y
view = whle
nonsense
[shard two]
view = shard
strategy = fast
wrap = N
keep = dyy
[local a]
split = H
[shard
[shard two]
[shard ops]
op = cudnnPoolng* cublasXgemm
split = H:z
view = shard
END
  run 78 "$sundog" rules --check net.rules
  line 2 'axis y = two'
  line 3 "'shrad' is not a known kind of section; nearest: shard"
  line 4 "'Q' is not a known dimension"
  line 5 "'foo' is not a known op"
  line 6 "'splt' is not a known key of a section; nearest: split"
  line 7 "'whle' is not a known value of view; nearest: whole"
  line 8 "'nonsense' is neither"
  line 9 "section 'two' has no 'split =' line"
  line 11 "'fast' is not a known value of strategy"
  line 12 'N cannot be periodic'
  line 13 "'dyy' is not a known value of keep"
  line 15 "'split' is a key of [shard]"
  line 16 'needs a ]'
  line 17 "section 'two' is already in line 9"
  line 19 "'cudnnPoolng*' is not a known op; nearest: cudnn"
  line 19 "'cublasXgemm' is not a known op"
  line 20 "'z' is not a known axis of the mesh; nearest: y"
  faults 17
  silent out
}
one_fault_is_not_reported_twice() {
  local bad
  for bad in 's/view = shard/view = shadr/' 's/split = H:y/split = H:x/' \
    's/parts = 1,2/parts = 1,2,3/' 's/y = 2/y = 0/' 's/\[shard/[sard/' \
    's/split/spilt/' 's/view.*//' 's/split.*//' 's/y = 2/y = 1/' \
    's/\[mesh\]/[mush]/'; do
    printf '%s\n' '[mesh]' 'y = 2' '[shard]' 'split = H:y' 'parts = 1,2' \
      'view = shard' >good.rules
    run 0 "$sundog" rules --check good.rules
    sed "$bad" good.rules >net.rules
    run 78 "$sundog" rules --check -n 2 net.rules
    faults 1
  done
}
the_short_form_is_checked() {
  run 0 "$sundog" rules --check --split H --view shard -n 4
  says out 'for 4 ranks'
  says out 'split H:ranks in 4 (agree), view shard'
  run 0 "$sundog" rules --check --split H --view shard --parts 3,4,5
  says out 'for 3 ranks'
  run 0 "$sundog" rules --check --split H:y,W:x --mesh y=2,x=2 --view whole
  run 0 "$sundog" rules --check --split tags --view shard
  says out 'the program says itself'
  run 78 "$sundog" rules --check --split H
  says err SDG-112
  run 78 "$sundog" rules --check --split H:q --mesh y=2,x=2 --view shard -n 3
  says err 'the mesh y=2,x=2 does not have 3 ranks'
  says err "'q' is not a known axis of the mesh; nearest: y"
  run 78 env SUNDOG_VEIW=shard "$sundog" rules --check --split H
  says err 'nearest: SUNDOG_VIEW'
  # The arguments of this command count, not those of a run.
  run 0 env SUNDOG_RULES=nowhere "$sundog" rules --check --split H --view shard
}
every_sample_of_rules_is_right() {
  local rules
  for rules in "$nets"/*.rules; do
    run 0 env SUNDOG_VIEW=shard "$sundog" rules --check "$rules"
    silent err
  done
}
wrong_usage_is_not_reported_as_faults_of_rules() {
  run 74 "$sundog" rules --check nowhere.rules
  says err SDG-105
  run 64 "$sundog" rules --check
  run 64 "$sundog" rules --check -n none net.rules
  run 64 "$sundog" rules --check a.rules b.rules
  run 64 "$sundog" rules --check a.rules --split H
  : >net.rules
  run 78 "$sundog" rules --check net.rules
  says err 'no [shard] section'
}
sizes_of_products_are_told() {
  run 0 "$sundog" rules --check -n 3 --view shard --split 'K; c = N'
  says out 'sizes N unsaid (SDG-621), K unsaid (SDG-621), view shard'
  run 0 "$sundog" rules --check -n 3 --view shard \
    --split 'K; c = N; sizes = K:piece N:whole'
  says out 'sizes N whole, K piece, view shard'
}

cases good_rules_are_shown_as_they_were_read \
  functions_are_shown_as_they_were_read every_fault_is_found_at_once \
  one_fault_is_not_reported_twice the_short_form_is_checked \
  every_sample_of_rules_is_right wrong_usage_is_not_reported_as_faults_of_rules \
  sizes_of_products_are_told
