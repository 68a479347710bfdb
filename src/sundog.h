/* SPDX-License-Identifier: Apache-2.0 */
/* What a program can tell sundog, and ask it. No program has to: sundog works
 * on programs that know nothing of it.
 *
 * A program need not be linked to sundog either. It looks the functions up
 * and does without where they are not there:
 *
 *   #include <dlfcn.h>
 *   #include <sundog.h>
 *
 *   __typeof__(&sundog_thread) name_thread =
 *       (__typeof__(&sundog_thread))dlsym(RTLD_DEFAULT, "sundog_thread");
 *   if (name_thread && name_thread("loader") != 0)
 *     ...
 *
 * The names of this header and those that begin with SUNDOG_ or sundog_ are
 * sundog's. Functions that may fail return 0, or the number nnn of a code
 * SDG-nnn (`sundog explain SDG-nnn`); what is wrong stands on stderr then, and
 * in sundog_error(). Any thread may call any of them. */
#ifndef SUNDOG_H
#define SUNDOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUNDOG_API __attribute__((visibility("default")))

/* "0.1.0": of the library that answers. Static. */
SUNDOG_API const char *sundog_version(void);

/* "SDG-nnn what is wrong: the numbers" of the calling thread's last failure in
 * sundog, of these functions and of tagged calls alike; "" if there was none.
 * The library's, until the thread's next failure. */
SUNDOG_API const char *sundog_error(void);

/* Names the calling thread, for programs that make tagged calls from several
 * threads of a rank at once. What the ranks' threads of one name do belongs
 * together: each makes the same tagged calls in the same order, in whatever
 * order the threads come and run. One thread of a rank needs no name.
 *
 * `name`: 1 to 31 letters, digits, '.', '_' or '-', copied. One living thread
 * of a rank has a name at a time, the next one takes it over; a job has at most
 * seven names. It holds until the thread ends, takes another name or gives it
 * back by NULL. Agreements, plans, buffers and communicators are kept with the
 * name, so that threads that come and go under one name cost no more than one
 * thread.
 *
 * To be called before the thread's first tagged call. Fails with 305 for what
 * is no name. That a name is taken (305) or one too many (306), the thread's
 * first tagged call says. Does nothing where nothing is split. */
SUNDOG_API int sundog_thread(const char *name);

/* Says of a tensor descriptor how its tensor is cut over the ranks, instead of
 * the rules of the run: "H", "H:y", "H:y,W:x", "N:data+model" as in `split =`
 * of a rules file (dimension:axis[+axis]), or "local", a tensor that is every
 * rank's own. It is said of what the descriptor was set to last: setting it
 * again takes the tag off. Tag the inputs of a call; its other tensors follow,
 * and need no tag. Tensors of one call may be tagged otherwise, and are brought
 * together; "local" beside one that is split is a tensor that is all there on
 * every rank.
 *
 * The run has to ask for a split, by rules or by `--split tags`, which leaves
 * all to the program; nothing happens where it does not. All ranks tag alike:
 * what they say is compared at the next call that uses the descriptor. Shard
 * view only: the descriptor has the extents of the rank's own piece.
 *
 * Fails with 303 for a descriptor that was not made by cuDNN's functions in
 * this process, with 609, 107 to 110 for a split that cannot be, 113 in the
 * whole view. Calls that use what does not fit fail with 609, and with 301
 * where the ranks differ. */
SUNDOG_API int sundog_tag(const void *descriptor, const char *split);

/* Takes a tag off: the rules decide again. Fails with 303. */
SUNDOG_API int sundog_untag(const void *descriptor);

/* Says of device memory how products of matrices are split that cuBLAS writes
 * there (C of a gemm, y of a gemv, D of cublasLtMatmul), instead of the rules
 * of the run: of those whose result begins in the `bytes` bytes from `pointer`
 * on. `split` is one of M, N, K and BATCH of the call, as in rules files, and
 * is followed by what the call's sizes are, the rank's piece or the whole; by
 * where matrices are that are cut otherwise, or may be as far as their memory
 * tells; and by the parts of what is stated whole:
 *
 *   sundog_tag_range(h, bytes, "M:y; sizes = piece");
 *       each rank has rows of A and C, and its calls state so many
 *   sundog_tag_range(y, bytes, "K:y; sizes = piece; a = K:y; b = K:y");
 *       terms of the sums, which are all-reduced
 *   sundog_tag_range(y, bytes, "K:y; c = N:y; sizes = K:piece N:whole; "
 *                              "a = K:y; b = K:y; parts = N:even");
 *       reduce-scattered
 *   sundog_tag_range(h, bytes, "M:y; a = M:y; b = N:y; "
 *                              "sizes = M:piece N:whole; parts = N:20,20,19");
 *       B's columns are gathered first
 *   sundog_tag_range(g, bytes, "K:y; sizes = piece; sum = no");
 *       the program sums
 *   sundog_tag_range(h, bytes, "M:y; sizes = piece; values = global");
 *       norms and dot products of what is written are of all pieces; else as
 *       --piece-values says
 *   sundog_tag_range(t, bytes, "local");
 *       every rank's own
 *
 * The text is at most 95 characters long. Products of which it does not say
 * enough fail with 621, 622 and 623.
 * It holds until the same memory, or a part of it, is tagged otherwise, NULL
 * takes it off: memory that is used for something else is not known to be. All
 * ranks tag alike, which is compared at each such product. The run has to ask
 * for a split, by rules or by `--split tags`; nothing happens where it does
 * not. Shard view only. Fails with 609 for no memory, 106 to 110 for a split
 * that cannot be, 113 in the whole view. */
SUNDOG_API int sundog_tag_range(const void *pointer, size_t bytes,
                                const char *split);

/* Moves a tensor to where it is needed: y becomes x, which is placed otherwise.
 * x and y are device memory with this rank's pieces, described by cuDNN tensor
 * descriptors of one element type, whose layouts may differ; they do not
 * overlap. A placement is a split as in sundog_tag(), or "replicated", all of
 * the tensor on every rank; along axes that a placement does not name all ranks
 * have the same. "sum:AXIS[+AXIS]" as a further item says that the ranks along
 * these axes have terms of which the tensor is the sum ("max:" the largest):
 * of x they are combined; y, "sum:" only, has the tensor on the first such rank
 * and zeros on the others.
 *
 *   sundog_redistribute(handle, rows, "H:y", x, columns, "W:y", y);
 *   sundog_redistribute(handle, terms, "sum:y", x, all, "replicated", y);
 *
 * Pieces may have any sizes that add up, also none: then the pointer is NULL,
 * and of the descriptor, which cannot have an extent of 0, the split dimensions
 * do not count. No rank holds more than its pieces but for combined values,
 * which take the room of x once more. Collective: all ranks of the split make
 * the call, like a tagged call. Enqueued on the handle's stream, a
 * cudnnHandle_t; nothing waits for it. Where no split was asked for y is a copy
 * of x (cudnnTransformTensor).
 *
 * Fails with 303, 609, 107 to 110 for descriptors and placements that cannot
 * be; 400 where the ranks' pieces do not make one tensor, 603 where x and y are
 * not of one type and size; 113 in the whole view; and as tagged calls do. */
SUNDOG_API int sundog_redistribute(void *cudnn_handle, const void *x_descriptor,
                                   const char *x_placement, const void *x,
                                   const void *y_descriptor,
                                   const char *y_placement, void *y);

/* Neighbourhood attention over a grid of 1 to 3 dimensions, which is in the
 * program a sequence: each query attends to the keys of a window around it. In
 * each dimension a query at i of `extent` sees, of the indices i mod d, i mod d
 * + d ..., with d the dilation, k in a row. Counted in this class, where the
 * query is u = floor(i / d) and the class has n = ceil((extent - i mod d) / d)
 * members, these are
 *   [s, s + k), s = clamp(u - floor(k / 2), 0, n - k): at an edge the window is
 *       shifted into the grid, as by NATTEN; k * d is at most the extent
 *   [u - floor(k / 2), u - floor(k / 2) + k) cut at [0, n), with `cut`
 *   [u - k + 1, u + 1) cut at 0, where `causal`
 * and the window of a query is their product over the dimensions.
 * Example: extent 10, k = 3, d = 2. i = 8 is member 4 of the 5 even ones:
 * s = clamp(4 - 1, 0, 2) = 2, the keys 4, 6, 8; cut, 6 and 8; causal, 4, 6, 8.
 * Then o = sum of p v, p = softmax of scale * (q . k) over the window; sums of
 * half precision are made in float. */
typedef struct sundog_neighborhood {
  int dims;        /* 1, 2 or 3, of the grid */
  int kernel[3];   /* k >= 1, of each dimension; those of `dims` count */
  int dilation[3]; /* d >= 1 */
  int causal[3];   /* not 0: no key lies behind the query */
  int cut;         /* not 0: windows are cut at the grid's edges, not shifted */
  int heads;       /* C is heads times a head's channels, head by head */
  double scale;    /* 0: 1 / sqrt(channels of a head of q) */
} sundog_neighborhood_t;

/* o becomes the attention of q to k and v, device memory of one type (float,
 * double, half or bfloat16) with any strides. Dimensions of the descriptors are
 * N C W, N C H W or N C D H W: the grid's are the first `dims` after C, those
 * that are left have extent 1. A sequence [N, H*W, heads, channels] in memory
 * is N C H W with the strides of NHWC; [N, heads, H*W, channels] is that of N *
 * heads tensors with one head. q and k have the same C, and v and o; all have
 * the same N and grid.
 *
 * How q is cut over the ranks, a tag or the rules say. Any dimension of the
 * grid may be cut, N, and C between heads, several at once. k, v and o may be
 * cut alike, in any parts, or otherwise, each by a tag of its own, or be whole
 * on every rank: what windows see of k and v comes from the ranks that have it,
 * and o, of which no piece is empty then, goes to where it belongs. Pieces may
 * be smaller than the kernel, and empty: then the pointer is NULL, and of the
 * descriptor the cut dimensions do not count. Collective, enqueued and without
 * a wait, as sundog_redistribute(). Without a split, and for tensors that are
 * tagged "local", the rank computes all of it.
 *
 * Made of calls of cuDNN. They work on copies in float, or double, of what the
 * rank's queries see of k and v, backward with as much for its gradients, and
 * of so many queries at a time that their copies, products and scores take
 * SUNDOG_ATTENTION_KIB (256 MiB) of device memory, or what one query of one
 * head takes. Tensors that are written overlap no other.
 *
 * Fails with 620 for windows and shapes that cannot be, 603 where pieces do not
 * belong together, 604 for other types, 303 and 609 for descriptors and tags,
 * 601 where a split was asked for and neither a tag nor a rule is about q; and
 * as tagged calls do. */
SUNDOG_API int sundog_neighborhood_attention(
    void *cudnn_handle, const sundog_neighborhood_t *how,
    const void *q_descriptor, const void *q, const void *k_descriptor,
    const void *k, const void *v_descriptor, const void *v,
    const void *o_descriptor, void *o);

/* Its gradients: dq, dk and dv become those of q, k and v for the gradient
 * d_o of o. Each may be cut as its tensor is, d_o as o, or otherwise. What
 * ranks have of the gradients of other ranks' keys and values goes back to
 * these, in float for types of half precision, and is added in one order; where
 * every rank has all of k and v, the sums over the ranks do. Otherwise as
 * above. */
SUNDOG_API int sundog_neighborhood_attention_backward(
    void *cudnn_handle, const sundog_neighborhood_t *how,
    const void *q_descriptor, const void *q, const void *k_descriptor,
    const void *k, const void *v_descriptor, const void *v,
    const void *do_descriptor, const void *d_o, const void *dq_descriptor,
    void *dq, const void *dk_descriptor, void *dk, const void *dv_descriptor,
    void *dv);

/* Where this rank's piece lies in the whole tensor: first[d] is the index, in
 * the whole, of the piece's first element in dimension d, whole[d] the extent
 * of the whole. Elements; dimensions as cuDNN orders them, N C ...; the first
 * `dims` of them are written, first and whole have room for so many. Returns
 * the number of dimensions, 0 for a descriptor that no tagged call has used
 * since it was set (a query of the output size is one). Example: rows 520 to
 * 1019 of 2048: first[2] = 520, whole[2] = 2048, and the descriptor's own
 * height is 500. */
SUNDOG_API int sundog_placement(const void *descriptor, int dims,
                                int64_t *first, int64_t *whole);

#ifdef __cplusplus
}
#endif

#endif
