# SPDX-License-Identifier: Apache-2.0
"""Named cases: products of matrices."""

NAMED = []

# Tokens are columns, because cuBLAS sees a row-major array as its transpose.
TOKENS = "0,600,1187,1760,2345"
NAMED += [("linear, 2345 rows, product",
           f"op=matmul ta=T mesh=4 split=n:0 partn={TOKENS} size=5x2345x8x0"),
          ("linear, 2345 rows, product, with bias and GELU",
           f"op=matmul_lt follow=gelubias ta=T mesh=4 split=n:0 partn={TOKENS} "
           "size=5x2345x8x0"),
          ("linear, 2345 rows, gradient of the data",
           f"op=matmul mesh=4 split=n:0 partn={TOKENS} size=8x2345x5x0"),
          ("linear, 2345 rows, gradient of the weights",
           f"op=matmul tb=T beta=1 mesh=4 split=k:0 partk={TOKENS} "
           "size=8x5x2345x0")]

# Every row of the table of placements in doc/products.md; the hidden units are
# cut into 11+11+10.
HIDDEN = "mesh=3 part{0}=0,11,22,32 "
NAMED += [(f"product, {name}", HIDDEN.format(dim) + f"split={dim}:0 " + words)
          for name, dim, words in (
              ("rows of A", "m", "op=matmul size=32x60x24x0"),
              ("columns of B", "n", "op=matmul size=60x32x24x0"),
              ("terms, summed", "k", "op=matmul size=24x60x32x0"),
              ("terms, summed in pieces of rows", "k",
               "op=matmul size=24x60x32x0 at_c=m:0"),
              ("terms, summed in pieces of columns", "k",
               "op=matmul size=24x60x32x0 at_c=n:0 beta=0.5"),
              ("rows of A and columns of B, A gathered", "n",
               "op=matmul size=60x32x24x0 at_a=m:0"),
              ("rows of A and columns of B, B gathered", "m",
               "op=matmul size=32x60x24x0 at_b=n:0"),
              ("rows of A and terms of B, B gathered", "m",
               "op=matmul size=32x60x24x0 at_b=k:0"),
              ("rows of A and terms of B, sums scattered", "k",
               "op=matmul size=24x60x32x0 at_a=m:0 at_c=m:0"),
              ("terms of A, all of B", "k",
               "op=matmul size=24x60x32x0 at_b=replicated"),
              ("members of the batch", "b",
               "op=matmul api=strided size=5x6x7x32"),
              ("a bias added once", "k", "op=matmul_lt follow=bias "
               "size=24x60x32x0 beta=1 apart=1"),
              ("an activation after the sum", "k", "op=matmul_lt "
               "follow=relubias size=24x60x32x0 rows=1 at_c=n:0"),
              ("old values by rows, sums by columns", "k", "op=matmul_lt "
               "size=24x60x32x0 beta=0.5 apart=1 rows=c"),
              ("old values by rows, sums in pieces of columns", "k",
               "op=matmul_lt follow=bias size=32x32x32x0 beta=0.5 apart=1 "
               "rows=ac at_c=n:0"),
              ("old values by columns, sums in pieces of rows", "k",
               "op=matmul_lt size=32x32x32x2 beta=0.5 apart=1 one_c=1 "
               "rows=bd at_c=m:0"),
              ("halves, summed in float", "k", "op=matmul api=gemmex type=half "
               "halves=1 size=24x60x32x0 beta=1"),
              ("a vector, rows", "m", "op=matvec size=32x1x24x0"),
              ("a vector, terms", "k", "op=matvec ta=T size=24x1x32x0"),
              ("vectors with gaps between elements", "k",
               "op=matvec size=24x1x32x0 beta=0.5 inc_b=3 inc_c=2"))]

NAMED += [(f"product, ranks without terms, {name}",
           f"mesh=4 split=k:0 partk=0,1,2,2,2 {words} view=whole")
          for name, words in (
              ("factors by columns and rows",
               "op=matmul_lt size=10x9x2x0 apart=1 rows=b"),
              ("sums by rows",
               "op=matmul_lt size=10x9x2x0 beta=0.5 apart=1 rows=d at_c=m:0"),
              ("old values", "op=matmul size=10x9x2x0 beta=0.5 tb=T"),
              ("halves", "op=matmul api=gemmex type=half ctype=half "
               "size=10x9x2x0 beta=0.5 at_c=n:0"))]
