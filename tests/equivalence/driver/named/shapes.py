# SPDX-License-Identifier: Apache-2.0
"""Splits and sizes that named cases of several ops have."""


def cut(total, pieces, uneven=True):
    """Returns the boundaries of about equal pieces. uneven: moves the inner
    boundaries by up to 2."""
    push = (0, 1, -1, 2, -2, 1, -1)
    first = [total * i // pieces for i in range(pieces + 1)]
    if uneven:
        for i in range(1, pieces):
            first[i] += push[i % len(push)]
    return ",".join(map(str, first))


def square(size, k, s, p, pieces, channels="n=1 c=3 k=2", d=1, uneven=True):
    """Returns a 2-D convolution whose rows are split into `pieces`."""
    return (f"mesh={pieces} split=H:0 partH={cut(size, pieces, uneven)} "
            f"size={size}x{size} kernel={k}x{k} stride={s}x{s} "
            f"dilation={d}x{d} pad={p}x{p} {channels}")


def line(size, k, s, p, pieces, channels="n=2 c=16 k=8"):
    """Returns a 1-D convolution: W is 1."""
    return (f"mesh={pieces} split=H:0 partH={cut(size, pieces)} size={size}x1 "
            f"kernel={k}x1 stride={s}x1 dilation=1x1 pad={p}x0 {channels}")


def mesh2d(size, k, s, p, channels="n=2 c=16 k=8"):
    return (f"mesh=2x2 split=H:0,W:1 partH={cut(size, 2)} "
            f"partW={cut(size, 2)} size={size}x{size} kernel={k}x{k} "
            f"stride={s}x{s} dilation=1x1 pad={p}x{p} {channels}")


def cube(size, k, s, p, channels="n=2 c=4 k=4"):
    return (f"mesh=2x2 split=D:0,H:1 partD={cut(size, 2)} "
            f"partH={cut(size, 2)} size={size}x{size}x{size} "
            f"kernel={k}x{k}x{k} stride={s}x{s}x{s} dilation=1x1x1 "
            f"pad={p}x{p}x{p} {channels}")
