# SPDX-License-Identifier: Apache-2.0
"""The calls that tests/peers/run compares: layers of known networks and the ops
between them. Columns (W) are split over two to four ranks, because DTensor
splits convolutions in the last dimension only; pieces are even, or those of
torch.chunk. A line is as in tests/equivalence/driver/cases.py.
"""

# Kernel, stride, padding, dilation, groups of 4 channels.
CONVOLUTIONS = [
    (1, 1, 0, 1, 1),  # bottleneck of ResNet
    (1, 2, 0, 1, 1),  # its shortcut
    (3, 1, 1, 1, 1),  # ResNet, VGG, U-Net
    (3, 2, 1, 1, 1),  # ResNet, each stage's first
    (3, 1, 0, 1, 1),  # the first U-Net
    (3, 1, 2, 2, 1),  # DeepLab
    (3, 1, 1, 1, 4),  # MobileNet, depthwise
    (5, 1, 2, 1, 1),  # Inception
    (5, 2, 2, 1, 1),  # encoders
    (7, 2, 3, 1, 1),  # ResNet's stem
    (7, 1, 3, 1, 4),  # ConvNeXt, depthwise
    (2, 2, 0, 1, 1),  # ConvNeXt, between stages
    (4, 4, 0, 1, 1),  # patches
    (4, 2, 1, 1, 1),  # GANs
]
TRANSPOSED = [(2, 2, 0, 1, 1),  # U-Net
              (4, 2, 1, 1, 1),  # GANs
              (3, 1, 1, 1, 1), (3, 2, 1, 1, 1)]
POOLINGS = [(2, 2, 0), (4, 4, 0), (3, 2, 1), (3, 1, 1), (3, 3, 0), (5, 1, 2)]
# Ranks and columns: chunks are 16+16, 8+8+8+8, 11+11+10, 8+8+8+6.
PIECES = [(2, 32), (4, 32), (3, 32), (4, 30)]


def chunks(extent, pieces):
    """Returns where torch.chunk cuts."""
    most = -(-extent // pieces)
    return ",".join(str(min(i * most, extent)) for i in range(pieces + 1))


def case(op, ranks, extent, words, dim="W"):
    return (f"op={op} mesh={ranks} split={dim}:0 "
            f"part{dim}={chunks(extent, ranks)} {words} seed=7 bold=1")


def image(op, ranks, width, words):
    return case(op, ranks, width, f"n=2 c=4 size=12x{width} {words}")


def windows(k, s, p, d=None, groups=None):
    words = f"kernel={k}x{k} stride={s}x{s} pad={p}x{p}"
    return words + (f" dilation={d}x{d} groups={groups} k=4" if d else "")


def transposed(ranks, width, k, s, p, d, groups):
    """Returns a transposed convolution: dy has `width` columns, dx the size
    that torch computes."""
    size = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n in (12, width)]
    return case("conv_data", ranks, width,
                f"given=dy n=2 c=4 size={size[0]}x{size[1]} " +
                windows(k, s, p, d, groups))


def compared_calls():
    """Yields (group, line) of each call."""
    for ranks, width in PIECES:
        for op, group in (("forward", "convolution"),
                          ("data", "convolution: gradient of the data"),
                          ("filter", "convolution: gradient of the filter")):
            for words in CONVOLUTIONS:
                yield group, image("conv_" + op, ranks, width, windows(*words))
        for words in TRANSPOSED:
            yield "transposed convolution", transposed(ranks, width, *words)
        for op in ("pool_forward", "pool_backward"):
            for mode in ("max", "avgin"):
                for words in POOLINGS:
                    yield "pooling, forward and backward", image(
                        op, ranks, width, f"mode={mode} " + windows(*words))
        for op in ("bn_training", "bn_inference", "bn_backward"):
            yield "batch normalisation", image(op, ranks, width,
                                               "running=0 saved=0")
        for groups in (1, 2):  # cuDNN: groups are the channels
            yield "group normalisation", case(
                "bn_training", ranks, width, f"as=group n=1 c={groups} "
                f"size={48 // groups}x{width} running=0 saved=0")
        for op in ("softmax_forward", "softmax_backward"):
            yield "softmax", image(op, ranks, width, "mode=channel")
            yield "softmax", case(op, ranks, width, f"n=2 c=1 size=1x{width}")
        for fn in ("add", "avg", "max", "norm2"):
            for over in ("W", "HW", "NHW", "NCHW", "C"):
                yield "reduction", image("reduce", ranks, width,
                                         f"fn={fn} over={over}")
        for dim, size in (("m", f"{width}x12x8x0"), ("n", f"12x{width}x8x0"),
                          ("k", f"12x8x{width}x0"), ("b", f"12x8x6x{width}")):
            api = "api=strided " if dim == "b" else ""
            yield "product of matrices", case("matmul", ranks, width,
                                              f"{api}size={size}", dim)
