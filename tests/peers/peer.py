# SPDX-License-Identifier: Apache-2.0
"""One library's part of tests/peers/run, for a Python that has PyTorch. It
reads cases from stdin, carries each out on ranks (processes that communicate by
gloo), and prints a verdict and a reason for each.

usage: peer.py LIBRARY    dtensor or shardtensor; prints its name first

right: all ranks have the right results. refused: all ranks get an exception.
wrong: a result is wrong or missing, and no rank gets an exception. crashed: only
some ranks get an exception, or some do not end.
"""
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [os.path.join(HERE, folder) for folder in
                 ("../equivalence", "../equivalence/driver", "..")]
import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import (DTensor, Replicate, Shard,
                                      distribute_module, distribute_tensor)

from cases import case_of
from check import Wrong, compare, values_of
from families import family_of

LIBRARY = sys.argv[1]
SECONDS = 25  # for one case
if LIBRARY == "shardtensor":
    import physicsnemo
    from physicsnemo.distributed import DistributedManager
    from physicsnemo.domain_parallel import (ShardTensor, register_custom_ops,
                                             scatter_tensor)
    from physicsnemo.domain_parallel import _shard_tensor_spec

    def gathered_shapes(shape, _, group, do_checks=False):
        """Replaces the library's function, which sends the shapes through a
        GPU."""
        shapes = [None] * dist.get_world_size(group)
        dist.all_gather_object(shapes, tuple(shape), group)
        return tuple(shapes)

    # With a GPU the library does the following by itself: it registers its ops,
    # names the device to the group, and gathers shapes in device memory.
    register_custom_ops()
    start_group = dist.init_process_group
    dist.init_process_group = \
        lambda *args, device_id=None, **more: start_group(*args, **more)
    _shard_tensor_spec._gather_shard_shapes_for_dim = gathered_shapes


class Parameters(torch.nn.Module):
    """Weights; every rank has all of them."""

    def __init__(self, **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            setattr(self, name, torch.nn.Parameter(tensor))


def begin(rank, ranks, folder):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks),
                      LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT="0")
    store = dist.FileStore(os.path.join(folder, "store"), ranks)
    if LIBRARY == "shardtensor":
        os.environ["MASTER_PORT"] = open(
            os.path.join(folder, "port")).read()
        DistributedManager.initialize()
    else:
        dist.init_process_group("gloo", store=store, rank=rank,
                                world_size=ranks)
    return init_device_mesh("cpu", (ranks,), mesh_dim_names=("domain",))


def scatter(value, mesh, dim, grad=False):
    """Cuts a value along a dimension into chunks, like the library. dim None:
    not cut."""
    value = torch.tensor(value, dtype=torch.float32)
    where = [Replicate() if dim is None else Shard(dim)]
    if LIBRARY == "shardtensor":
        return scatter_tensor(value.contiguous(), 0, mesh, tuple(where),
                              requires_grad=grad)
    return distribute_tensor(value, mesh, where).requires_grad_(grad)


def like(value, y):
    """Returns a gradient that is cut like y."""
    value = torch.tensor(value, dtype=torch.float32)
    if LIBRARY == "shardtensor":
        where = y.placements[0]
        if not isinstance(where, Shard):
            return scatter(value, y.device_mesh, None)
        sizes = [torch.zeros(1, dtype=torch.int64)
                 for _ in range(dist.get_world_size())]
        dist.all_gather(sizes, torch.tensor([y.to_local().shape[where.dim]]))
        piece = value.split([int(s) for s in sizes], where.dim)
        return ShardTensor.from_local(piece[dist.get_rank()].contiguous(),
                                      y.device_mesh, y.placements,
                                      sharding_shapes="infer")
    return distribute_tensor(value, y.device_mesh, y.placements)


def whole(t):
    return t.full_tensor() if hasattr(t, "full_tensor") else t


def gradients(y, dy, *inputs):
    if tuple(y.shape) != dy.shape:
        raise Wrong(f"y is {tuple(y.shape)}, not {dy.shape}")
    y.backward(like(dy, y))
    if any(t.grad is None for t in inputs):
        raise Wrong("a gradient is missing, and no error says so")
    return [whole(t.grad) for t in inputs]


def convolution(case, v, mesh):
    words = dict(stride=case["stride"], padding=case["pad"],
                 dilation=case["dilation"], groups=case["groups"])
    weights = distribute_module(Parameters(w=torch.tensor(
        v["w"] if "w" in v else np.zeros(v["dw"].shape),
        dtype=torch.float32)), mesh)
    if case.get("given"):
        return {"dx": whole(F.conv_transpose2d(scatter(v["dy"], mesh, 3),
                                               weights.w, **words))}
    x = scatter(v["x"] if "x" in v else np.zeros(v["dx"].shape), mesh, 3, True)
    y = F.conv2d(x, weights.w, **words)
    if case["op"] == "conv_forward":
        return {"y": whole(y)}
    if case["op"] == "conv_data":
        return {"dx": gradients(y, v["dy"], x)[0]}
    return {"dw": gradients(y, v["dy"], weights.w)[0]}


def pooling(case, v, mesh):
    x = scatter(v["x"], mesh, 3, True)
    pool = F.max_pool2d if case["mode"] == "max" else F.avg_pool2d
    y = pool(x, case["kernel"], case["stride"], case["pad"])
    if case["op"] == "pool_forward":
        return {"y": whole(y)}
    return {"dx": gradients(y, v["dy"], x)[0]}


def norm(case, v, mesh):
    if case.get("as") == "group":
        groups, (height, width) = case["c"], case["size"]
        size = (1, 4, groups * height // 4, width)
        channel = lambda name: torch.tensor(
            v[name].ravel(), dtype=torch.float32).repeat_interleave(4 // groups)
        weights = distribute_module(Parameters(
            scale=channel("scale"), bias=channel("bias")), mesh)
        y = F.group_norm(scatter(v["x"].reshape(size), mesh, 3), groups,
                         weights.scale, weights.bias, case["epsilon"])
        return {"y": whole(y).reshape(v["x"].shape)}
    flat = {name: torch.tensor(v[name].ravel(), dtype=torch.float32)
            for name in ("scale", "bias", "mean", "var") if name in v}
    flat.setdefault("bias", torch.zeros_like(flat["scale"]))
    weights = distribute_module(Parameters(**flat), mesh)
    x = scatter(v["x"], mesh, 3, True)
    stored = [getattr(weights, name).detach() if name in flat else None
              for name in ("mean", "var")]
    y = F.batch_norm(x, *stored, weights.scale, weights.bias,
                     case["op"] != "bn_inference", 0.1, case["epsilon"])
    if case["op"] != "bn_backward":
        return {"y": whole(y)}
    dx, dscale, dbias = gradients(y, v["dy"], x, weights.scale, weights.bias)
    return {"dx": dx, "dscale": dscale.reshape(v["dscale"].shape),
            "dbias": dbias.reshape(v["dbias"].shape)}


def softmax(case, v, mesh):
    dim = 1 if case["mode"] == "channel" else 3
    if case["op"] == "softmax_forward":
        return {"y": whole(F.softmax(scatter(v["x"], mesh, 3), dim))}
    x = scatter(np.log(v["y"]), mesh, 3, True)
    return {"dx": gradients(F.softmax(x, dim), v["dy"], x)[0]}


def reduction(case, v, mesh):
    a = scatter(v["a"], mesh, 3)
    over = tuple("NCHW".index(dim) for dim in case["over"])
    function = {"add": torch.sum, "avg": torch.mean, "max": torch.amax,
                "norm2": lambda a, over, keepdim: torch.linalg.vector_norm(
                    a, 2, over, keepdim)}[case["fn"]]
    return {"c": whole(function(a, over, keepdim=True))}


def product(case, v, mesh):
    """A product. Matrices of cuBLAS are stored by columns: [batch,] columns,
    rows."""
    dims = {"a": "km", "b": "nk"}
    batch = "b" if case["size"][3] else ""
    cut = next(iter(case["split"]))
    a, b = (scatter(v[name], mesh, (batch + order).index(cut)
                    if cut in batch + order else None)
            for name, order in dims.items())
    return {"c": whole(b @ a)}


OPS = {"conv": convolution, "pool": pooling, "bn": norm, "softmax": softmax,
       "reduce": reduction, "matmul": product}


def judge(case, rank, ranks, folder):
    """Carries out one rank's part; returns its verdict and reason."""
    tensors, values = values_of(case)
    right = family_of(case).reference(case, values)
    mesh = begin(rank, ranks, folder)
    try:
        found = OPS[case["op"].split("_")[0]](case, values, mesh)
    except Wrong as wrong:
        return "wrong", str(wrong)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        if os.environ.get("PEER_TRACE"):
            traceback.print_exc()
        return "refused", text
    for t in tensors:
        if not t.out:
            continue
        value = found[t.name].detach().double().numpy()
        if list(value.shape) != list(t.size):
            return "wrong", f"{t.name} is {value.shape}, not {tuple(t.size)}"
        try:
            compare("", t, value, None, right[t.name],
                    tuple(slice(0, n) for n in t.size), False)
        except Wrong as wrong:
            return "wrong", str(wrong)
    return "right", ""


def child(case, rank, ranks, folder):
    try:
        verdict, reason = judge(case, rank, ranks, folder)
    except BaseException as error:
        verdict, reason = "crashed", repr(error)[:200]
    with open(os.path.join(folder, f"{rank}.part"), "w") as file:
        file.write(f"{verdict}\t{reason[:300]}")
    os.rename(file.name, os.path.join(folder, str(rank)))
    # Ranks that still wait for this one get its answer, or are ended.
    deadline = time.time() + SECONDS
    while time.time() < deadline and any(
            not os.path.exists(os.path.join(folder, str(r)))
            for r in range(ranks)):
        time.sleep(0.01)
    os._exit(0)


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(case):
    """Runs the ranks of one case; returns their common verdict, or how they
    ended."""
    ranks = case["mesh"][0]
    with tempfile.TemporaryDirectory(prefix="peer-") as folder:
        with open(os.path.join(folder, "port"), "w") as file:
            file.write(str(free_port()))
        children = []
        for rank in range(ranks):
            pid = os.fork()
            if not pid:
                child(case, rank, ranks, folder)
            children.append(pid)
        end = time.time() + SECONDS
        for pid in children:
            fd = os.pidfd_open(pid)
            if not select.select([fd], [], [], max(0, end - time.time()))[0]:
                os.kill(pid, signal.SIGKILL)
            os.close(fd)
            os.waitpid(pid, 0)
        found = []
        for rank in range(ranks):
            path = os.path.join(folder, str(rank))
            found.append(open(path).read().split("\t", 1)
                         if os.path.exists(path) else ["crashed", "no answer"])
    verdicts = {verdict for verdict, _ in found}
    verdict = "right" if verdicts == {"right"} else \
        "refused" if verdicts == {"refused"} else \
        "wrong" if verdicts <= {"right", "wrong"} else "crashed"
    reasons = [reason for said, reason in found if said != "right"]
    return verdict, reasons[0] if reasons else ""


def main():
    version = torch.__version__.split("+")[0]
    print(f"DTensor of PyTorch {version}" if LIBRARY == "dtensor" else
          f"ShardTensor of PhysicsNeMo {physicsnemo.__version__}", flush=True)
    for line in sys.stdin:
        case = case_of(line)
        verdict, reason = run(family_of(case).complete(case))
        print(verdict, reason.replace("\n", " "), sep="\t", flush=True)


if __name__ == "__main__":
    main()
