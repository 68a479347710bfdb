/* SPDX-License-Identifier: Apache-2.0 */
/* The functions by which a program can talk to sundog. No program has to use
 * them: sundog works on programs that know nothing of it.
 *
 * A program need not be linked to sundog either. It can look the functions up,
 * and run without them if sundog is not loaded:
 *
 *   #include <dlfcn.h>
 *   #include <sundog.h>
 *
 *   __typeof__(&sundog_thread) name_thread =
 *       (__typeof__(&sundog_thread))dlsym(RTLD_DEFAULT, "sundog_thread");
 *   if (name_thread && name_thread("loader") != 0)
 *     ...
 *
 * All names that this header declares belong to sundog, and so do names that
 * begin with SUNDOG_ or sundog_. A function that may fail returns 0, or the
 * number nnn of a code SDG-nnn (`sundog explain SDG-nnn`). It then writes what
 * is wrong to stderr, and sundog_error() returns it. Any thread may call any
 * function. */
#ifndef SUNDOG_H
#define SUNDOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUNDOG_API __attribute__((visibility("default")))

/* The version of the loaded library, as in "0.1.0". Static. */
SUNDOG_API const char *sundog_version(void);

/* The calling thread's last failure in these functions or in a tagged call:
 * "SDG-nnn what is wrong: the numbers"; "" if nothing failed. The library owns
 * the text; it is valid until the thread's next failure. */
SUNDOG_API const char *sundog_error(void);

/* Names the calling thread. Programs need this if several threads of a rank
 * make tagged calls at the same time. Threads with the same name on all ranks
 * work together: each makes the same tagged calls in the same order. It does
 * not matter in which order the threads start and run. A rank's only thread
 * needs no name.
 *
 * `name`: 1 to 31 letters, digits, '.', '_' or '-'; it is copied. At any time
 * one living thread of a rank has a name; when it ends, another thread may take
 * the name. A job has at most seven names. A thread keeps its name until it
 * ends, takes another name, or passes NULL. Agreements, plans, buffers and
 * communicators belong to the name, so that threads that start and end under
 * one name cost no more than one thread.
 *
 * Call it before the thread's first tagged call. Returns 305 for an invalid
 * name. If the name is taken (305) or there are too many names (306), the
 * thread's first tagged call fails. Does nothing if nothing is split. */
SUNDOG_API int sundog_thread(const char *name);

/* Says how the tensor of a descriptor is split over the ranks, in place of the
 * run's rules: "H", "H:y", "H:y,W:x", "N:data+model" as in `split =` of a rules
 * file (dimension:axis[+axis]), or "local" for a tensor that belongs to each
 * rank alone. The tag holds for the values that the descriptor has now: setting
 * the descriptor again removes it. Tag the inputs of a call; its other tensors
 * follow and need no tag. Tensors of one call may have different tags, and are
 * then moved to where the call needs them. If another tensor of the call is
 * split, "local" means that every rank has the whole tensor.
 *
 * The run has to ask for a split, by rules or by `--split tags`, which leaves
 * all decisions to the program; otherwise this does nothing. All ranks must
 * give the same tags; the next call that uses the descriptor compares them. For
 * the shard view only: the descriptor has the extents of the rank's own piece.
 *
 * Returns 303 for a descriptor that cuDNN's functions in this process did not
 * make; 609 and 107 to 110 for an impossible split; 113 in the whole view. A
 * call fails with 609 if the tag does not fit its tensor, and with 301 if the
 * ranks' tags differ. */
SUNDOG_API int sundog_tag(const void *descriptor, const char *split);

/* Removes a tag, so that the rules decide again. Returns 303 as above. */
SUNDOG_API int sundog_untag(const void *descriptor);

/* Says how products of matrices are split whose result cuBLAS writes to this
 * memory (C of a gemm, y of a gemv, D of cublasLtMatmul), in place of the run's
 * rules. It holds for results that begin in the `bytes` bytes from `pointer`
 * on. `split` begins with a split of M, N, K or BATCH of the call, as in rules
 * files. Further items say: `sizes`, whether the sizes that the call states are
 * the rank's piece or the whole; `a`, `b`, `c`, where a matrix is, if it is
 * split otherwise or if its memory leaves that open; `parts`, how a size stated
 * as the whole is cut:
 *
 *   sundog_tag_range(h, bytes, "M:y; sizes = piece");
 *       each rank has rows of A and C, and its calls state their number
 *   sundog_tag_range(y, bytes, "K:y; sizes = piece; a = K:y; b = K:y");
 *       each rank has addends of the sums, which are all-reduced
 *   sundog_tag_range(y, bytes, "K:y; c = N:y; sizes = K:piece N:whole; "
 *                              "a = K:y; b = K:y; parts = N:even");
 *       the sums are reduce-scattered
 *   sundog_tag_range(h, bytes, "M:y; a = M:y; b = N:y; "
 *                              "sizes = M:piece N:whole; parts = N:20,20,19");
 *       B's columns are gathered first
 *   sundog_tag_range(g, bytes, "K:y; sizes = piece; sum = no");
 *       the program adds the sums itself
 *   sundog_tag_range(h, bytes, "M:y; sizes = piece; values = global");
 *       norms and dot products of the result combine all pieces; without
 *       `values`, --piece-values decides
 *   sundog_tag_range(t, bytes, "local");
 *       each rank's own product
 *
 * A text without semicolons says how a tensor is split that begins in this
 * memory and that a graph (cudnnBackendExecute) reads or writes. It tells
 * tensors apart that share a plan; one tensor of an execution suffices, as with
 * sundog_tag():
 *
 *   sundog_tag_range(x, bytes, "H:y");
 *   sundog_tag_range(x, bytes, "local");
 *
 * The text has at most 95 characters. Products that it does not describe
 * completely fail with 621, 622 or 623.
 *
 * The tag holds until the same memory, or a part of it, is tagged again; NULL
 * removes it. Remove it before the memory is used for something else, because
 * sundog does not see that. All ranks must give the same tags, which each such
 * product compares. The run has to ask for a split, by rules or by `--split
 * tags`; otherwise this does nothing. For the shard view only. Returns 609 for
 * a NULL pointer or no bytes, 106 to 110 for an impossible split, 113 in the
 * whole view. */
SUNDOG_API int sundog_tag_range(const void *pointer, size_t bytes,
                                const char *split);

/* Copies tensor x to y, which has another placement. x and y are device memory
 * with this rank's pieces. Their cuDNN tensor descriptors have the same element
 * type and may have different layouts; x and y do not overlap. A placement is a
 * split as in sundog_tag(), or "replicated": every rank has the whole tensor.
 * Ranks along axes that a placement does not name have the same data. A further
 * item "sum:AXIS[+AXIS]" says that the ranks along these axes have addends
 * whose sum is the tensor ("max:": whose maximum it is). Addends of x are
 * combined. For y only "sum:" is possible: the first rank along these axes gets
 * the tensor, the others get zeros.
 *
 *   sundog_redistribute(handle, rows, "H:y", x, columns, "W:y", y);
 *   sundog_redistribute(handle, terms, "sum:y", x, all, "replicated", y);
 *
 * Pieces may have any sizes that add up, also 0: then the pointer is NULL, and
 * the descriptor's split dimensions are ignored, because a descriptor cannot
 * have an extent of 0. A rank needs memory for its pieces only and, if addends
 * are combined, once more that of x. Collective: all ranks of the split make
 * the call, like a tagged call. It is enqueued on the stream of the handle, a
 * cudnnHandle_t, and does not wait. If the run asked for no split, y becomes a
 * copy of x (cudnnTransformTensor).
 *
 * Returns 303, 609, 107 to 110 for invalid descriptors and placements; 400 if
 * the ranks' pieces do not make one tensor; 603 if x and y differ in type or
 * size; 113 in the whole view; and the codes of tagged calls. */
SUNDOG_API int sundog_redistribute(void *cudnn_handle, const void *x_descriptor,
                                   const char *x_placement, const void *x,
                                   const void *y_descriptor,
                                   const char *y_placement, void *y);

/* Neighbourhood attention over a grid of 1 to 3 dimensions: each query attends
 * to the keys in a window around it. The windows of one dimension are as
 * follows, with its extent, kernel k and dilation d. A query at i sees k keys
 * among those at i mod d, i mod d + d, i mod d + 2d, ... Number these from 0 to
 * n - 1, n = ceil((extent - i mod d) / d); the query itself is number u =
 * floor(i / d). It sees the numbers
 *   [s, s + k), s = clamp(u - floor(k / 2), 0, n - k): at an edge the window is
 *       shifted into the grid, as NATTEN does; k * d is at most the extent
 *   [u - floor(k / 2), u - floor(k / 2) + k) cut at [0, n), with `cut`
 *   [u - k + 1, u + 1) cut at 0, with `causal`
 * The window of a query is the product of these over the dimensions.
 * Example: extent 10, k = 3, d = 2. The query at 8 is number 4 of the 5 even
 * positions: s = clamp(4 - 1, 0, 2) = 2, so it sees the keys at 4, 6 and 8;
 * with `cut` 6 and 8; with `causal` 4, 6 and 8.
 * The result is o = sum of p v, p = softmax of scale * (q . k) over the window.
 * Sums of half precision are computed in float. */
typedef struct sundog_neighborhood {
  int dims;        /* dimensions of the grid: 1, 2 or 3 */
  int kernel[3];   /* k >= 1, for each dimension of the grid */
  int dilation[3]; /* d >= 1, for each dimension of the grid */
  int causal[3];   /* not 0: a query sees no key behind itself */
  int cut;         /* not 0: windows are cut at the grid's edges, not shifted */
  int heads;       /* C is heads * channels of a head, head by head */
  double scale;    /* 0: 1 / sqrt(channels of a head of q) */
} sundog_neighborhood_t;

/* Computes the attention o of q to k and v. All are device memory of one type
 * (float, double, half or bfloat16) with any strides. The descriptors have the
 * dimensions N C W, N C H W or N C D H W: the grid's are the first `dims` after
 * C, the others have extent 1. A sequence in memory of shape [N, H*W, heads,
 * channels] is N C H W with the strides of NHWC; one of shape [N, heads, H*W,
 * channels] is N * heads tensors with one head. q and k have the same C, and so
 * have v and o; all have the same N and grid.
 *
 * A tag or the rules say how q is split over the ranks. Any dimension of the
 * grid may be split, N, and C between heads; several at once. k, v and o may be
 * split like q, in any parts; or otherwise, each by its own tag; or be whole on
 * every rank. Keys and values that a window sees come from the ranks that have
 * them. If o is split otherwise than q, its rows are sent to their owners, and
 * no piece of o may be empty. Other pieces may be smaller than the kernel, and
 * empty: then the pointer is NULL, and the descriptor's split dimensions are
 * ignored. Collective and enqueued, as sundog_redistribute(). Without a split,
 * and for tensors tagged "local", the rank computes all of it.
 *
 * It is made of cuDNN calls. They work on copies, in float or double, of the
 * keys and values that the rank's queries see; the backward call needs as much
 * again for their gradients. They work on so many queries at a time that
 * copies, products and scores take SUNDOG_ATTENTION_KIB (256 MiB) of device
 * memory, or what one query of one head needs. Tensors that are written must
 * not overlap others.
 *
 * Returns 620 for impossible windows and shapes, 603 if pieces do not belong
 * together, 604 for other types, 303 and 609 for descriptors and tags, 601 if a
 * split was asked for and neither a tag nor a rule names q; and the codes of
 * tagged calls. */
SUNDOG_API int sundog_neighborhood_attention(
    void *cudnn_handle, const sundog_neighborhood_t *how,
    const void *q_descriptor, const void *q, const void *k_descriptor,
    const void *k, const void *v_descriptor, const void *v,
    const void *o_descriptor, void *o);

/* Computes the gradients dq, dk and dv of q, k and v from the gradient d_o of
 * o. Each gradient may be split like its tensor, d_o like o, or otherwise. A
 * rank's gradients for keys and values of other ranks are sent to their owners,
 * in float for half precision, and added in a fixed order. If every rank has
 * all of k and v, the gradients are summed over the ranks. Everything else is
 * as above. */
SUNDOG_API int sundog_neighborhood_attention_backward(
    void *cudnn_handle, const sundog_neighborhood_t *how,
    const void *q_descriptor, const void *q, const void *k_descriptor,
    const void *k, const void *v_descriptor, const void *v,
    const void *do_descriptor, const void *d_o, const void *dq_descriptor,
    void *dq, const void *dk_descriptor, void *dk, const void *dv_descriptor,
    void *dv);

/* Returns where this rank's piece lies in the whole tensor: first[d] is the
 * index of the piece's first element in dimension d, whole[d] the extent of the
 * whole, in elements. The dimensions have cuDNN's order, N C ...; at most
 * `dims` are written, and first and whole have room for as many. Returns the
 * number of dimensions; 0 if no tagged call has used the descriptor since it
 * was set (a query of the output size is such a call). Example: rows 520 to
 * 1019 of 2048: first[2] = 520, whole[2] = 2048, and the descriptor's own
 * height is 500. */
SUNDOG_API int sundog_placement(const void *descriptor, int dims,
                                int64_t *first, int64_t *whole);

/* ---- without cuDNN ---------------------------------------------------------
 * For programs that compute with functions and kernels of their own, and may be
 * changed a little. They need no cuDNN; all memory is device, managed or pinned
 * memory of the CUDA runtime. */

/* Types of elements, numbered as cudnnDataType_t. */
typedef enum sundog_type {
  SUNDOG_FLOAT = 0,
  SUNDOG_DOUBLE = 1,
  SUNDOG_HALF = 2,
  SUNDOG_INT8 = 3,
  SUNDOG_INT32 = 4,
  SUNDOG_UINT8 = 6,
  SUNDOG_BFLOAT16 = 9,
  SUNDOG_INT64 = 10
} sundog_type_t;

/* A tensor: this rank's piece of it. Members that are not set are 0. */
typedef struct sundog_tensor {
  sundog_type_t type;
  /* Names of its 1 to 5 dimensions among N C D H W, in the order of `extent`:
   * "H W". */
  const char *dims;
  int64_t extent[5]; /* elements; 0: this rank has none */
  int64_t stride[5]; /* elements; all 0: packed, the last is contiguous */
  /* How it is split over the ranks, as in sundog_tag(): "H:y"; NULL: as the
   * rules say. */
  const char *split;
  /* Another number, on every rank, after the extents of some rank have changed.
   * The ranks compare extents at the first call with a tensor that this rank
   * has not used before; without another number a rank whose own extents are
   * still the same would not take part, which ends in error 300. */
  int version;
} sundog_tensor_t;

/* What stands beyond the ends of the whole tensor. */
typedef enum sundog_border {
  SUNDOG_LEAVE = 0, /* what is there: the program's boundary conditions */
  SUNDOG_WRAP = 1,  /* the elements of the other end */
  SUNDOG_ZERO = 2   /* zeros */
} sundog_border_t;

/* How many elements around a piece are wanted. Members are in the order of the
 * tensor's dimensions, and are equal on all ranks, except `stride`. */
typedef struct sundog_widths {
  int64_t before[5], after[5]; /* elements, >= 0; may exceed a piece */
  sundog_border_t border[5];
  int64_t stride[5]; /* of `out`, elements; all 0: packed */
} sundog_widths_t;

/* Gets the elements around this rank's piece: `out` becomes the piece with
 * before[d] elements in front of it and after[d] behind it, in each dimension
 * d. `data` is the piece. `out` has before[d] + extent[d] + after[d] elements,
 * on every rank, at the ends of the whole, too. Corners are included.
 *
 *   Rows 4 to 8 of 20 on this rank, 3 columns, one row before, two after:
 *     sundog_tensor_t u = {SUNDOG_DOUBLE, "H W", {5, 3}, .split = "H:y"};
 *     sundog_widths_t w = {.before = {1}, .after = {2}};
 *     sundog_halo(stream, &u, piece, &w, out);
 *   out is [8, 3]: row 3 of the whole, the piece, rows 9 and 10. On the rank
 *   with rows 15 to 19 its last two rows stay as they are; with
 *   .border = {SUNDOG_WRAP} they are rows 0 and 1 of the whole.
 *
 * The piece may lie in `out` already, where it is to be: data = out + 3 in the
 * example, with the strides of `out`. Otherwise the two do not overlap. A rank
 * that has no elements (an extent of 0) passes NULL for both; nothing is
 * written there.
 *
 * Collective: all ranks of the split make the call, like a tagged call. It is
 * enqueued on `stream`, a cudaStream_t (NULL: the default stream), and does not
 * wait. After a first call it may be captured into a CUDA graph. Without a
 * split, for a tensor that is local, and in the whole view this rank has the
 * whole tensor, and `out` is made of it. `split` is for the shard view only.
 * `wrap` of the rules does not count.
 *
 * Returns 645 for impossible arguments, 106 to 110 and 609 for an impossible
 * dimension or split, 400 if the ranks' pieces do not make one tensor, 301 if
 * widths or borders differ, 601 if a split was asked for and neither `split`
 * nor a rule names the tensor, 113 for a `split` in the whole view; and the
 * codes of tagged calls. */
SUNDOG_API int sundog_halo(void *stream, const sundog_tensor_t *tensor,
                           const void *data, const sundog_widths_t *widths,
                           void *out);

/* Returns where this rank's piece lies: first[d] is the index of its first
 * element in the whole, whole[d] the whole's extent, in the order of the
 * tensor's dimensions and in elements. Both have room for them. Returns their
 * number; 0 if no sundog_halo() has used such a tensor yet, or it is
 * impossible. Without a split first is 0 and whole the tensor's own. Example:
 * above, first = {4, 0} and whole = {20, 3}. */
SUNDOG_API int sundog_tensor_place(const sundog_tensor_t *tensor,
                                   int64_t *first, int64_t *whole);

typedef enum sundog_op {
  SUNDOG_SUM = 0,
  SUNDOG_MAX = 1,
  SUNDOG_MIN = 2
} sundog_op_t;

/* Combines numbers of the ranks, in place: each of the `count` numbers at
 * `data` becomes the sum, maximum or minimum of the ranks' numbers there, as an
 * all-reduce. `axes` are axes of the mesh, "y" or "y+x"; only ranks along them
 * are combined. NULL: all axes that the run splits over.
 *
 *   sundog_combine(stream, &state->fastest, 1, SUNDOG_DOUBLE, SUNDOG_MAX,
 * NULL);
 *
 * Sums are rounded in another order than on one rank, but in the same order in
 * each run. Collective and enqueued, as sundog_halo(): all ranks of the split
 * make the call with equal arguments, whatever the axes. If the run asked for
 * no split, nothing changes.
 *
 * Returns 645 for impossible arguments (no numbers, more than 2^31 - 1), 604
 * for a type that cannot be combined, 107 and 609 for axes that the mesh or the
 * split does not have, 301 or 400 if the ranks' arguments differ, 113 in the
 * whole view, where every rank has the whole's numbers; and the codes of tagged
 * calls. */
SUNDOG_API int sundog_combine(void *stream, void *data, size_t count,
                              sundog_type_t type, sundog_op_t op,
                              const char *axes);

/* Describes a function of the program's own, in a shared library, as a section
 * [function NAME] of a rules file does (doc/rules.md): `text` has its lines.
 *
 *   sundog_define("wave_step",
 *                 "arguments = in u, in v, out w, int rows, int columns\n"
 *                 "tensor = u v w: float [rows columns]\n"
 *                 "dims = H W\n"
 *                 "reach = H:1 W:1\n"
 *                 "stream = none\n");
 *
 * From then on calls of the function are split as the run's [shard] sections
 * say: those that the dynamic linker has bound in the objects that are loaded
 * now, and through addresses that dlsym() returns later. So call it at the
 * start, on every rank, with the same text, after the function's library is
 * loaded, and before the program takes the function's address or opens a
 * further library that calls it: such calls would not be seen. A section in the
 * rules file sees these, too. A call that is not seen is not split; if no call
 * of the function is seen in a run, `sundog run` says so at its end.
 *
 * The text is copied. Giving it again has no effect. Does nothing if the run
 * asks for no split.
 *
 * Returns what `sundog rules` says of such a section (106 to 109); 109 also for
 * another text of the same function, and for one that the rules file declares;
 * 642 if no loaded library has the function, or its calls cannot be seen.
 * Ranks with different texts end with 301 at the first call. */
SUNDOG_API int sundog_define(const char *name, const char *text);

#ifdef __cplusplus
}
#endif

#endif
