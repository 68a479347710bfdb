#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sundog diff` finds what is equal, what differs, and where.
# shellcheck disable=SC2154,SC2317,SC1091 # harness.sh
. "$(dirname "$0")/harness.sh"

# npy FILE DTYPE SHAPE FORMAT VALUE...: writes an array; Python's struct packs
# its elements by FORMAT ("f", "e" ...); B is bfloat16.
npy() {
  python3 - "$@" <<'P'
import struct, sys
path, dtype, shape, form, *values = sys.argv[1:]
head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (dtype, shape)
head = head.ljust(117) + "\n"
if form == "B":
    body = b"".join(struct.pack("<f", float(v))[2:] for v in values)
else:
    form = form.replace("b8", "B")
    kind = float if form in "efd" else int
    body = b"".join(struct.pack("<" + form, kind(v)) for v in values)
open(path, "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + body)
P
}

equal_arrays_are_equal() {
  npy a '<f4' '2, 3' f 1 2 3 4 5 nan
  cp a b
  run 0 "$sundog" diff a b
  [ "$(cat out)" = '0 of 6 elements differ' ]
  run 0 "$sundog" diff -q a b
  silent out
}
the_largest_differences_are_named() {
  npy a '<f4' '2, 3' f 1 2 3 4 5 6
  npy b '<f4' '2, 3' f 1 2.5 3 4 7 6
  run 1 "$sundog" diff a b
  says out '2 of 6 elements differ'
  says out 'first difference at (0, 1): 2 and 2.5'
  says out 'largest absolute difference 2 at (1, 1): 5 and 7'
  says out 'largest relative difference 0.285714 at (1, 1): 5 and 7'
  run 1 "$sundog" diff b a
  says out 'largest relative difference 0.4 at (1, 1): 7 and 5'
  run 1 "$sundog" diff -q a b
  silent out
}
tolerances_add_up() {
  npy a '<f8' '2,' d 100 1
  npy b '<f8' '2,' d 101 1
  run 1 "$sundog" diff --rtol 0.005 --atol 0.49 a b
  says out '1 of 2 elements differ, 1 by more than allowed'
  run 0 "$sundog" diff --rtol 0.005 --atol 0.5 a b
  says out '1 of 2 elements differ, 0 by more than allowed'
  run 0 "$sundog" diff --atol 1 a b
  run 0 "$sundog" diff --rtol 0.01 a b
  run 1 "$sundog" diff --rtol 0.0099 a b
}
nan_and_infinity_are_values() {
  npy a '<f4' '4,' f nan 1 inf 0
  npy b '<f4' '4,' f nan 1 inf -0.0
  run 0 "$sundog" diff a b
  npy b '<f4' '4,' f 1 nan inf 0
  run 1 "$sundog" diff --rtol 9 --atol 9 a b
  says out '2 of 4 elements differ, 2 by more than allowed; 2 are NaN in one file only'
  for value in -inf 3; do
    npy b '<f4' '4,' f nan 1 "$value" 0
    run 1 "$sundog" diff --rtol 9 --atol 9 a b
    run 1 "$sundog" diff --rtol 9 --atol 9 b a
  done
}
every_type_is_read() {
  # type, format, two values, their difference as printed
  while read -r dtype form x y size; do
    npy a "$dtype" '1,' "$form" "$x"
    npy b "$dtype" '1,' "$form" "$y"
    run 1 "$sundog" diff a b
    says out "largest absolute difference $size at (0): $x and $y"
    run 0 "$sundog" diff a a
  done <<'X'
|b1 b 0 1 1
|i1 b -128 127 255
|u1 b8 0 255 255
<i2 h -32768 32767 65535
<u2 H 0 65535 65535
<i4 i -2147483648 1 2.14748e+09
<u4 I 0 4294967295 4.29497e+09
<i8 q 9223372036854775806 9223372036854775807 1
<u8 Q 18446744073709551614 18446744073709551615 1
<f2 e -1.5 65504 65505.5
<f2 e 0 5.9605e-08 5.96046e-08
|V2 B -1.5 256 257.5
<f4 f -1.5 2 3.5
<f8 d -1.5 2 3.5
X
}
complex_numbers_differ_by_their_modulus() {
  npy a '<c8' '1,' f
  python3 - <<'P'
import struct
head = open("a", "rb").read()[:128]
open("a", "wb").write(head + struct.pack("<ff", 1, 1))
open("b", "wb").write(head + struct.pack("<ff", 4, -3))
P
  run 1 "$sundog" diff a b
  says out 'largest absolute difference 5 at (0): 1+1i and 4-3i'
}
shapes_and_types_differ() {
  npy a '<f4' '2, 3' f 1 2 3 4 5 6
  npy b '<f4' '3, 2' f 1 2 3 4 5 6
  run 1 "$sundog" diff --atol 9 a b
  says out 'shapes differ: (2, 3) and (3, 2)'
  npy b '<f8' '2, 3' d 1 2 3 4 5 6
  run 1 "$sundog" diff a b
  says out 'types differ: <f4 and <f8'
  says out '0 of 6 elements differ'
  run 0 "$sundog" diff --any-type a b
}
odd_shapes_are_compared() {
  npy a '<f4' '' f 1
  npy b '<f4' '' f 2
  run 1 "$sundog" diff a b
  says out 'at (): 1 and 2'
  npy a '<f4' '0, 3' f
  cp a b
  run 0 "$sundog" diff a b
}
a_large_file_needs_little_memory() {
  # Sparse files of zeros; one file has a 1.
  for file in a b; do
    npy $file '<f4' '1024, 32768' f
    truncate -s $((128 + 4 * 32768 * 1024)) $file
  done
  printf '\0\0\200?' | dd of=b bs=1 conv=notrunc seek=$((128 + 4 * 32768 * 1023 + 8)) 2>dd
  sanitized || ulimit -v 98304
  run 1 "$sundog" diff a b
  says out '1 of 33554432 elements differ'
  says out 'at (1023, 2): 0 and 1'
}
trouble_is_not_a_difference() {
  npy a '<f4' '1,' f 1
  run 64 "$sundog" diff a
  run 64 "$sundog" diff a a a
  run 74 "$sundog" diff a nowhere
  says err SDG-700
  run 64 "$sundog" diff --rtol x a a
  run 64 "$sundog" diff --rtol nan a a
  run 64 "$sundog" diff --atol -1 a a
  npy b '|V3' '0,' f
  run 65 "$sundog" diff b b
  says err 'are not numbers'
  head -c 130 a >c
  run 65 "$sundog" diff a c
  says err SDG-701
}

cases equal_arrays_are_equal the_largest_differences_are_named \
  tolerances_add_up nan_and_infinity_are_values every_type_is_read \
  complex_numbers_differ_by_their_modulus shapes_and_types_differ \
  odd_shapes_are_compared a_large_file_needs_little_memory trouble_is_not_a_difference
