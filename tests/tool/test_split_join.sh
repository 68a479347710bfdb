#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog split` and `sundog join`: pieces have the right elements, and join
# refuses pieces that do not fit together.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"

# raw BYTES FILE: writes bytes that differ from their neighbours.
raw() {
  local i
  for ((i = 0; i < $1; i++)); do
    printf '%b' "\\x$(printf %02x $(((i * 7 + i / 256) % 256)))"
  done >"$2"
}
# npy SHAPE FILE: writes an array of u1 with such bytes; SHAPE is like "3, 4".
npy() {
  local header bytes=1 n
  for n in ${1//,/ }; do bytes=$((bytes * n)); done
  header="{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" >"$2"
  raw "$bytes" elements
  cat elements >>"$2"
}
# body FILE: prints the elements of a .npy file with a header of 128 bytes.
body() { tail -c +129 "$1"; }

rows_are_cut_where_the_parts_say() {
  npy '10, 3' f.npy
  run 0 "$sundog" split --parts 3,5,2 f.npy
  [ "$(cat out)" = $'f.0.npy (3, 3)\nf.1.npy (5, 3)\nf.2.npy (2, 3)' ]
  cmp <(body f.1.npy) <(body f.npy | tail -c +10 | head -c 15)
  run 0 "$sundog" join back.npy f.0.npy f.1.npy f.2.npy
  cmp back.npy f.npy
}
columns_are_cut_too() {
  npy '4, 6' f.npy
  run 0 "$sundog" split --dim W -n 2 -o 'c{rank}.npy' f.npy
  [ "$(cat out)" = $'c0.npy (4, 3)\nc1.npy (4, 3)' ]
  cmp <(body c1.npy | head -c 3) <(body f.npy | tail -c +4 | head -c 3)
  run 0 "$sundog" join --dim 1 back.npy 'c{rank}.npy'
  cmp back.npy f.npy
}
pieces_go_to_a_folder() {
  mkdir in to.d
  npy '4, 6' in/f
  run 0 "$sundog" split -n 2 --output to.d in/f
  [ "$(cat out)" = $'to.d/f.0 (2, 6)\nto.d/f.1 (2, 6)' ]
  mv in/f in/f.npy
  run 0 "$sundog" split -n 1 -o to.d in/f.npy
  cmp to.d/f.0.npy in/f.npy
}
every_method_divides_as_it_says() {
  npy '100, 2' f.npy
  run 0 "$sundog" split --parts even -n 3 f.npy
  [ "$(sed 's/.*(//' out | tr '\n' ' ')" = '34, 2) 33, 2) 33, 2) ' ]
  run 0 "$sundog" split --parts even/32 -n 3 f.npy
  [ "$(sed 's/.*(//' out | tr '\n' ' ')" = '64, 2) 32, 2) 4, 2) ' ]
  run 0 "$sundog" split --parts chunk -n 3 f.npy
  [ "$(sed 's/.*(//' out | tr '\n' ' ')" = '34, 2) 34, 2) 32, 2) ' ]
  run 0 "$sundog" join --parts chunk back.npy 'f.{rank}.npy'
  cmp back.npy f.npy
  run 65 "$sundog" join --parts even back2.npy 'f.{rank}.npy'
  says err SDG-720
  [ ! -e back2.npy ]
}
several_dimensions_are_cut_at_once() {
  npy '2, 9, 8' f.npy
  local cut=(--dim H:y,W:x --mesh y=2,x=3)
  run 0 "$sundog" split "${cut[@]}" --parts 'H:4,5 W:even' f.npy
  [ "$(wc -l <out)" -eq 6 ]
  says out 'f.4.npy (2, 5, 3)'
  run 0 "$sundog" join "${cut[@]}" back.npy 'f.{rank}.npy'
  cmp back.npy f.npy
  # Two axes for one dimension, in another order.
  run 0 "$sundog" split --dim 1:x+y --mesh y=2,x=2 f.npy -o 'g{rank}.npy'
  run 0 "$sundog" join --dim 1:x+y --mesh y=2,x=2 back.npy 'g{rank}.npy'
  cmp back.npy f.npy
}
ranks_may_hold_the_same_piece() {
  npy '6, 2' f.npy
  local cut=(--dim H:y --mesh data=2,y=2)
  run 0 "$sundog" split "${cut[@]}" f.npy
  cmp f.0.npy f.2.npy
  run 0 "$sundog" join "${cut[@]}" back.npy 'f.{rank}.npy'
  cmp back.npy f.npy
  printf x | dd of=f.3.npy bs=1 seek=130 conv=notrunc status=none
  run 65 "$sundog" join "${cut[@]}" back2.npy 'f.{rank}.npy'
  says err 'f.3.npy and f.1.npy are the same piece but differ'
  [ ! -e back2.npy ]
}
raw_files_are_cut_and_joined() {
  raw 96 f.raw # 2 x 4 x 3 floats
  local raw=(--shape 2,4,3 --dtype float32)
  run 0 "$sundog" split "${raw[@]}" --parts 1,3 f.raw
  [ "$(cat out)" = $'f.0.raw (2, 1, 3)\nf.1.raw (2, 3, 3)' ]
  cmp f.0.raw <({ head -c 12; tail -c +37 | head -c 12; } <f.raw)
  run 0 "$sundog" join "${raw[@]}" --parts 1,3 back.raw f.0.raw f.1.raw
  cmp back.raw f.raw
  run 65 "$sundog" join "${raw[@]}" --parts 2,2 back2.raw f.0.raw f.1.raw
  says err 'SDG-701'
  run 64 "$sundog" split --shape 2,4 f.raw -n 2
  says err '--dtype is missing'
}
parts_of_nothing_are_parts() {
  npy '4, 2' f.npy
  run 0 "$sundog" split --parts 0,4,0 f.npy
  run 0 "$sundog" join back.npy 'f.{rank}.npy'
  cmp back.npy f.npy
}
parts_that_do_not_add_up_are_refused() {
  npy '10, 3' f.npy
  run 64 "$sundog" split --parts 3,5 f.npy
  says err SDG-101
  run 64 "$sundog" split --parts 3,5,2 -n 4 f.npy
  says err SDG-101
  run 64 "$sundog" split f.npy
  says err 'the number of pieces is missing'
  run 64 "$sundog" split --dim D -n 2 f.npy
  says err "an array of 2 dimensions has no 'D'"
  run 64 "$sundog" split --dim 2 -n 2 f.npy
  run 64 "$sundog" split --dim H,H -n 2 f.npy
  says err 'cut twice'
  run 64 "$sundog" split --dim H:z --mesh y=2 f.npy
  says err "no axis 'z'"
  run 64 "$sundog" split --dim H,W --mesh y=2,x=2 f.npy
  says err 'H:y'
  run 64 "$sundog" split -n 2 -o one.npy f.npy
  says err '{rank}'
  run 74 "$sundog" split -n 2 nowhere.npy
  says err SDG-700
  [ "$(ls)" = $'elements\nerr\nf.npy\nout\nstderr\ntmp' ]
}
pieces_that_do_not_fit_are_refused() {
  npy '3, 4' a.npy
  npy '3, 5' b.npy
  npy '12,' c.npy
  run 65 "$sundog" join out.npy a.npy b.npy
  says err SDG-400
  run 0 "$sundog" join --dim W out.npy a.npy b.npy
  run 65 "$sundog" join out2.npy a.npy c.npy
  says err 'c.npy has 1 dimensions, a.npy has 2'
  sed 's/|u1/|i1/' a.npy >d.npy
  run 65 "$sundog" join out2.npy a.npy d.npy
  says err 'd.npy is of type |i1'
  run 65 "$sundog" join -n 3 out2.npy a.npy a.npy
  says err '2 pieces for 3 ranks'
  run 64 "$sundog" join --dim H:y,W:x --mesh y=2,x=2 out2.npy a.npy a.npy
  run 65 "$sundog" join out2.npy 'n{rank}.npy'
  says err SDG-720
  [ ! -e out2.npy ]
}
alphabetical_order_is_not_taken_for_the_ranks() {
  npy '12, 1' f.npy
  run 0 "$sundog" split -n 12 f.npy
  run 65 "$sundog" join back.npy f.*.npy
  says err "'out.{rank}.npy'"
  run 0 "$sundog" join back.npy 'f.{rank}.npy'
  cmp back.npy f.npy
}
# bytes FILE: prints its elements as hex digits.
pieces_in_another_order_are_said() {
  npy '12, 3' f.npy
  run 0 "$sundog" split -n 12 f.npy
  run 0 "$sundog" join back.npy 'f.{rank}.npy'
  silent err
  run 0 "$sundog" join back.npy f.{0..11}.npy
  silent err
  run 0 "$sundog" join other.npy f.0.npy f.2.npy f.1.npy f.{3..11}.npy
  says err 'f.2.npy comes before f.1.npy'
  # Names say nothing of the order of other files.
  cp f.0.npy north.npy
  cp f.1.npy east.npy
  run 0 "$sundog" join two.npy north.npy east.npy
  silent err
}
pieces_that_are_left_out_are_said() {
  npy '12, 3' f.npy
  run 0 "$sundog" split -n 12 f.npy
  run 0 "$sundog" join -f some.npy f.{0..8}.npy
  says err 'f.9.npy exists, but f.8.npy is the last of the pieces'
  run 0 "$sundog" join -f some.npy f.{0..9}.npy
  says err 'f.10.npy exists'
  run 0 "$sundog" join one.npy f.0.npy
  says err 'f.1.npy exists'
  run 0 "$sundog" join -f -n 9 some.npy 'f.{rank}.npy'
  says err 'f.9.npy exists'
  for n in 7 8 9 10; do
    printf -v name 'p-%03d-of-12.npy' $n
    cp f.$n.npy "$name"
  done
  run 0 "$sundog" join -f some.npy p-007-of-12.npy p-008-of-12.npy p-009-of-12.npy
  says err 'p-010-of-12.npy exists'
  run 0 "$sundog" join -f some.npy p-0{07,08,09,10}-of-12.npy
  silent err
}
pieces_of_an_earlier_split_are_said() {
  npy '12, 3' f.npy
  run 0 "$sundog" split -n 4 f.npy
  run 0 "$sundog" split -n 4 f.npy
  silent err
  run 0 "$sundog" split -n 2 f.npy
  says err 'f.2.npy is a piece of an earlier split, or another file'
  run 0 "$sundog" split -n 2 -o 'g{rank}.npy' f.npy
  silent err
}
one_file_is_not_two_pieces() {
  npy '4, 3' f.npy
  run 0 "$sundog" split -n 2 f.npy
  run 65 "$sundog" join back.npy f.0.npy f.0.npy
  says err 'f.0.npy is given twice'
  ln -s f.0.npy link.npy
  run 65 "$sundog" join back.npy f.0.npy link.npy
  says err 'link.npy is f.0.npy'
  ln f.0.npy hard.npy
  run 65 "$sundog" join back.npy hard.npy ./hard.npy
  says err './hard.npy is hard.npy'
  [ ! -e back.npy ]
  # Programs that save space link files with the same content.
  run 0 "$sundog" join equal.npy f.0.npy hard.npy
  rm hard.npy
  # Ranks along an axis without a split hold the same.
  run 0 "$sundog" join --dim H:y --mesh data=2,y=2 back.npy f.0.npy f.1.npy \
    f.0.npy f.1.npy
  cmp back.npy f.npy
}

bytes() { body "$1" | od -An -v -tx1 | tr -d ' \n'; }
# npy_of TYPE FORTRAN SHAPE HEX FILE: writes an array like numpy.save.
npy_of() {
  local header
  header="{'descr': '$1', 'fortran_order': $2, 'shape': ($3), }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" >"$5"
  printf '%b' "$(sed 's/../\\x&/g' <<<"$4")" >>"$5"
}
a_piece_is_never_the_output() {
  npy '4, 2' f.npy
  run 0 "$sundog" split --parts 1,3 f.npy
  cp f.0.npy was.0
  cp f.1.npy was.1
  mkdir sub
  ln -s f.0.npy soft.npy
  ln f.1.npy hard.npy
  ln -s ../f.1.npy sub/soft.npy
  local output
  for output in f.0.npy ./f.0.npy sub/../f.1.npy "$PWD/f.1.npy" soft.npy \
    hard.npy sub/soft.npy; do
    run 73 "$sundog" join "$output" f.0.npy f.1.npy
    says err SDG-731
    run 73 "$sundog" join --force "$output" 'f.{rank}.npy'
    says err SDG-731
    cmp f.0.npy was.0
    cmp f.1.npy was.1
  done
  # A piece, named by a link.
  run 73 "$sundog" join f.0.npy soft.npy f.1.npy
  says err SDG-731
  cmp f.0.npy was.0
}
a_forgotten_output_costs_no_piece() {
  npy '9, 2' f.npy
  run 0 "$sundog" split --parts 3,3,3 f.npy
  local r
  for r in 0 1 2; do cp "f.$r.npy" "was.$r"; done
  cp f.0.npy left.npy
  cp f.1.npy right.npy
  run 73 "$sundog" join -d 0 f.0.npy f.1.npy
  says err "the output 'f.0.npy' exists, and looks like a piece"
  run 73 "$sundog" join f.0.npy f.1.npy f.2.npy
  says err SDG-731
  run 73 "$sundog" join left.npy right.npy # by their shapes
  says err SDG-731
  run 73 "$sundog" join left.npy f.1.npy f.2.npy
  for r in 0 1 2; do cmp "f.$r.npy" "was.$r"; done
  cmp left.npy was.0
  raw 8 p.0.raw
  raw 8 p.1.raw
  run 73 "$sundog" join --shape 8 --dtype u1 --parts 8 p.0.raw p.1.raw
  says err SDG-731
  # An older result is replaced; with --force also a file that looks like a
  # piece.
  run 0 "$sundog" join whole.npy f.0.npy f.1.npy f.2.npy
  run 0 "$sundog" join whole.npy f.0.npy f.1.npy f.2.npy
  run 0 "$sundog" join whole.npy 'f.{rank}.npy'
  run 0 "$sundog" join --force left.npy f.1.npy f.2.npy
  cmp f.npy whole.npy
}
a_split_file_is_never_a_piece() {
  npy '4, 2' f1.npy
  cp f1.npy was
  run 73 "$sundog" split -n 2 -o 'f{rank}.npy' f1.npy
  says err SDG-731
  ln f1.npy g.1.npy
  run 73 "$sundog" split -n 2 -o 'g.{rank}.npy' f1.npy
  says err SDG-731
  run 73 "$sundog" split -n 1 -o ./f1.npy f1.npy
  says err SDG-731
  cmp f1.npy was
  [ ! -e f0.npy ]
  [ ! -e g.0.npy ]
  # On some file systems names that differ in case are one file.
  run 0 "$sundog" split -n 2 -o 'F{rank}.npy' f1.npy
}
links_are_replaced_not_followed() {
  npy '4, 2' f.npy
  echo mine >mine
  ln -s mine f.0.npy
  ln -s nowhere f.1.npy
  run 0 "$sundog" split -n 2 f.npy
  [ "$(cat mine)" = mine ]
  [ ! -L f.0.npy ]
  [ ! -e nowhere ]
}
# Checks that the command left no file in the folder.
no_parts() { [ -z "$(find . -name '.sundog-*')" ]; }
failures_leave_no_parts() {
  npy '3, 4' a.npy
  npy '3, 4' f.npy
  printf x | dd of=a.npy bs=1 seek=130 conv=notrunc status=none
  run 65 "$sundog" join --dim H:y --mesh data=2,y=1 out.npy a.npy f.npy
  says err differ
  no_parts
  mkdir f.1.npy # pieces 0 and 2 could be written
  run 74 "$sundog" split -n 3 f.npy
  says err 'f.1.npy is not a regular file'
  no_parts
  [ ! -e f.0.npy ]
}
signals_leave_no_parts() {
  # Large enough that it can be interrupted.
  truncate -s 160000000 big.raw
  local signal pid i
  for signal in TERM INT HUP PIPE; do
    env --default-signal=INT,HUP,PIPE "$sundog" split --shape 400000,100 \
      --dtype f4 --dim W -n 4 big.raw >/dev/null 2>err & pid=$!
    for ((i = 0; i < 500; i++)); do
      [ -z "$(find . -name '.sundog-*')" ] || break
      sleep 0.02
    done
    kill -"$signal" "$pid"
    wait "$pid" 2>/dev/null && return 1
    no_parts
    [ ! -e big.3.raw ]
  done
}
either_byte_order_is_kept() {
  npy_of '>i2' False '2, 2' 0102030405060708 f.npy
  run 0 "$sundog" split -n 2 f.npy
  grep -qa "'>i2'" f.1.npy
  [ "$(bytes f.1.npy)" = 05060708 ]
  run 0 "$sundog" join back.npy f.0.npy f.1.npy
  cmp back.npy f.npy
  # The same numbers, then one that differs.
  npy_of '<i2' False '2, 2' 0201040306050807 turned.npy
  run 0 "$sundog" diff --any-type turned.npy f.npy
  says out '0 of 4 elements differ'
  npy_of '>c8' False '1,' 3f80000040000000 c.npy
  npy_of '<c8' False '1,' 0000803f00000040 d.npy
  run 0 "$sundog" diff --any-type c.npy d.npy
  npy_of '>c8' False '1,' 3f80000040400000 c.npy
  run 1 "$sundog" diff --any-type c.npy d.npy
  says out 'at (0): 1+3i and 1+2i'
}
fortran_order_is_kept() {
  # [[0 1 2 3] [4 5 6 7]]
  npy_of '|u1' True '2, 4' 0004010502060307 f.npy
  npy_of '|u1' False '2, 4' 0001020304050607 c.npy
  run 0 "$sundog" diff f.npy c.npy
  run 0 "$sundog" split -n 2 f.npy
  grep -qa "'fortran_order': True, 'shape': (1, 4)" f.1.npy
  [ "$(bytes f.1.npy)" = 04050607 ]
  run 0 "$sundog" join back.npy f.0.npy f.1.npy
  cmp back.npy f.npy
  run 0 "$sundog" split -d W --parts 3,1 f.npy
  [ "$(bytes f.0.npy)" = 000401050206 ]
  run 0 "$sundog" join -d W back.npy f.0.npy f.1.npy
  cmp back.npy f.npy
  # Pieces in C and in Fortran order give an array in C order.
  run 0 "$sundog" split -d W --parts 3,1 -o 'c{rank}.npy' c.npy
  run 0 "$sundog" join -d W back.npy f.0.npy c1.npy
  cmp back.npy c.npy
  npy_of '|u1' True '2, 4' 0004010502060907 f.npy
  run 1 "$sundog" diff f.npy c.npy
  says out 'first difference at (0, 3): 9 and 3'
}
bool_and_complex_are_cut() {
  npy_of '|b1' False '4,' 00010100 b.npy
  run 0 "$sundog" split --parts 1,3 b.npy
  [ "$(bytes b.1.npy)" = 010100 ]
  run 0 "$sundog" join back.npy b.0.npy b.1.npy
  cmp back.npy b.npy
  npy_of '<c8' False '2, 1' 000102030405060708090a0b0c0d0e0f c.npy
  run 0 "$sundog" split -n 2 c.npy
  [ "$(bytes c.1.npy)" = 08090a0b0c0d0e0f ]
  run 0 "$sundog" join back.npy c.0.npy c.1.npy
  cmp back.npy c.npy
}

cases rows_are_cut_where_the_parts_say columns_are_cut_too \
  pieces_go_to_a_folder \
  every_method_divides_as_it_says several_dimensions_are_cut_at_once \
  ranks_may_hold_the_same_piece raw_files_are_cut_and_joined \
  parts_of_nothing_are_parts parts_that_do_not_add_up_are_refused \
  pieces_that_do_not_fit_are_refused \
  alphabetical_order_is_not_taken_for_the_ranks \
  pieces_in_another_order_are_said pieces_that_are_left_out_are_said \
  pieces_of_an_earlier_split_are_said one_file_is_not_two_pieces a_piece_is_never_the_output \
  a_forgotten_output_costs_no_piece a_split_file_is_never_a_piece \
  links_are_replaced_not_followed failures_leave_no_parts \
  signals_leave_no_parts either_byte_order_is_kept fortran_order_is_kept \
  bool_and_complex_are_cut
