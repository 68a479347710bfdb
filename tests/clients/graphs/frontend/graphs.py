# SPDX-License-Identifier: Apache-2.0
"""Graphs of cudnn-frontend's Python package, checked against numpy: a
convolution with bias and ReLU, its plan through serialize and deserialize, and
both gradients. With LAYER_VIEW=shard each rank has its rows."""
import ctypes
import os
import sys

import cudnn
import numpy

runtime = ctypes.CDLL('libcudart.so.13')
N, C, H, W, K = 2, 8, 12, 10, 16
failed = []
cuts = os.environ.get('LAYER_VIEW') == 'shard'
RANK = int(os.environ['SUNDOG_RANK']) if cuts else 0
RANKS = int(os.environ['SUNDOG_SIZE']) if cuts else 1


def piece(array):
    """This rank's rows of N H W C."""
    rows = array.shape[1]
    return numpy.ascontiguousarray(
        array[:, rows * RANK // RANKS:rows * (RANK + 1) // RANKS])


def ok(status):
    if status != 0:
        sys.exit(f'the CUDA runtime: status {status}')


def to_device(array):
    address = ctypes.c_void_p()
    ok(runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(array.nbytes)))
    ok(runtime.cudaMemcpy(address, array.ctypes.data_as(ctypes.c_void_p),
                          ctypes.c_size_t(array.nbytes), 1))
    return address.value


def to_host(address, like):
    array = numpy.empty_like(like)
    ok(runtime.cudaDeviceSynchronize())
    ok(runtime.cudaMemcpy(array.ctypes.data_as(ctypes.c_void_p),
                          ctypes.c_void_p(address),
                          ctypes.c_size_t(array.nbytes), 2))
    return array


def compare(what, got, right):
    error = numpy.abs(got.astype(numpy.float64) - right).max()
    size = numpy.abs(right).max()
    print(f'{what}: off by {error:.1e} of {size:.1e}')
    if not error <= 2e-3 * size:
        failed.append(what)


def channels_last(graph, name, array):
    """array: N H W C"""
    n, h, w, c = array.shape
    return graph.tensor(name=name, dim=[n, c, h, w],
                        stride=[h * w * c, 1, w * c, c])


def graph_begin(handle):
    return cudnn.pygraph(handle=handle, io_data_type=cudnn.data_type.HALF,
                         intermediate_data_type=cudnn.data_type.FLOAT,
                         compute_data_type=cudnn.data_type.FLOAT)


def plan(graph):
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans(cudnn.build_plan_policy.HEURISTICS_CHOICE)


def run(graph, tensors, handle):
    """tensors: by the graph's tensor, or uid, an address"""
    space = to_device(numpy.zeros(max(graph.get_workspace_size(), 1),
                                  numpy.uint8))
    graph.execute(tensors, space, handle=handle)


def convolution(x, w):
    """N H W C and K R S C to N H W K, padding 1"""
    padded = numpy.pad(x.astype(numpy.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = numpy.zeros((*x.shape[:3], w.shape[0]))
    for r in range(3):
        for s in range(3):
            y += numpy.einsum('nhwc,kc->nhwk',
                              padded[:, r:r + x.shape[1], s:s + x.shape[2]],
                              w[:, r, s].astype(numpy.float64))
    return y


def conv_bias_relu(handle, x, w, b):
    graph = graph_begin(handle)
    right = piece(numpy.maximum(convolution(x, w) + b.astype(numpy.float64), 0))
    x = piece(x)
    X, Y = channels_last(graph, 'x', x), channels_last(graph, 'w', w)
    B = channels_last(graph, 'b', b)
    y = graph.conv_fprop(image=X, weight=Y, padding=[1, 1], stride=[1, 1],
                         dilation=[1, 1])
    out = graph.relu(input=graph.bias(input=y, bias=B))
    out.set_output(True)
    plan(graph)
    like = right.astype(numpy.float16)
    tensors = {X: to_device(x), Y: to_device(w), B: to_device(b),
               out: to_device(numpy.full_like(like, numpy.nan))}
    run(graph, tensors, handle)
    compare('conv + bias + relu', to_host(tensors[out], like), right)
    again = graph_begin(handle)
    again.deserialize(graph.serialize())
    by_uid = {tensor.get_uid(): at for tensor, at in tensors.items()}
    by_uid[out.get_uid()] = to_device(numpy.full_like(like, numpy.nan))
    run(again, by_uid, handle)
    compare('the same, deserialized', to_host(by_uid[out.get_uid()], like),
            right)


def gradients(handle, x, w, dy):
    graph = graph_begin(handle)
    all_x, all_dy, x, dy = x, dy, piece(x), piece(dy)
    DY, F = channels_last(graph, 'dy', dy), channels_last(graph, 'w', w)
    dx = graph.conv_dgrad(loss=DY, filter=F, padding=[1, 1], stride=[1, 1],
                          dilation=[1, 1])
    n, h, v, c = x.shape
    dx.set_dim([n, c, h, v]).set_stride([h * v * c, 1, v * c, c])
    dx.set_output(True)
    plan(graph)
    tensors = {DY: to_device(dy), F: to_device(w),
               dx: to_device(numpy.full_like(x, numpy.nan))}
    run(graph, tensors, handle)
    # The gradient is a convolution with the mirrored, transposed filter.
    mirrored = numpy.ascontiguousarray(w[:, ::-1, ::-1].transpose(3, 1, 2, 0))
    compare('dgrad', to_host(tensors[dx], x),
            piece(convolution(all_dy, mirrored)))

    graph = graph_begin(handle)
    DY, X = channels_last(graph, 'dy', dy), channels_last(graph, 'x', x)
    dw = graph.conv_wgrad(image=X, loss=DY, padding=[1, 1], stride=[1, 1],
                          dilation=[1, 1])
    k, r, s, c = w.shape
    dw.set_dim([k, c, r, s]).set_stride([r * s * c, 1, s * c, c])
    dw.set_output(True)
    plan(graph)
    tensors = {DY: to_device(dy), X: to_device(x),
               dw: to_device(numpy.full_like(w, numpy.nan))}
    run(graph, tensors, handle)
    padded = numpy.pad(all_x.astype(numpy.float64),
                       ((0, 0), (1, 1), (1, 1), (0, 0)))
    right = numpy.zeros(w.shape)
    for i in range(3):
        for j in range(3):
            right[:, i, j] = numpy.einsum(
                'nhwk,nhwc->kc', all_dy.astype(numpy.float64),
                padded[:, i:i + all_x.shape[1], j:j + all_x.shape[2]])
    compare('wgrad', to_host(tensors[dw], w), right)


def main():
    print('cuDNN', cudnn.backend_version(), 'frontend', cudnn.__version__)
    handle = cudnn.create_handle()
    draw = numpy.random.default_rng(1)
    x = draw.standard_normal((N, H, W, C)).astype(numpy.float16)
    w = (draw.standard_normal((K, 3, 3, C)) / 8).astype(numpy.float16)
    b = draw.standard_normal((1, 1, 1, K)).astype(numpy.float16)
    dy = draw.standard_normal((N, H, W, K)).astype(numpy.float16)
    conv_bias_relu(handle, x, w, b)
    gradients(handle, x, w, dy)
    cudnn.destroy_handle(handle)
    if failed:
        sys.exit(f'wrong: {", ".join(failed)}')


main()
