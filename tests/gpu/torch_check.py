# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that does not use sundog's functions: a strided and a plain
convolution, and their gradients.

usage: torch_check.py digest | legacy|graph RANK SIZE [timeline] | ops RANK SIZE

digest prints a hash of its results. With a rank, the program has its rows of
the input, and compares its results with those of PyTorch's CPU code for the
whole input: "rank 0: y right ..." or "... wrong ...". legacy and graph select the
interface of cuDNN that PyTorch uses. timeline prints when each kernel and copy
of a later call ran, by PyTorch's profiler. ops applies functions whose kernels
are PyTorch's own, and says of each whether its result is that of the whole.
"""
import hashlib
import json
import os
import sys
import tempfile

what = sys.argv[1]
if what == "legacy":
    os.environ["TORCH_CUDNN_V8_API_DISABLED"] = "1"  # read at the first call
import torch  # noqa: E402

DEVICE = os.environ.get("TORCHCHECK_DEVICE", "cuda")
ROWS, COLUMNS = 48, 40


def layers():
    """Returns layers that are the same on every rank."""
    torch.manual_seed(7)
    plain = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
    wide = torch.nn.Conv2d(8, 4, 5, padding=2, bias=False)
    return plain, wide, torch.randn(2, 3, ROWS, COLUMNS)


def forward_backward(plain, wide, x):
    """Returns y, and the gradients of x and of both filters for dy = y."""
    x = x.clone().requires_grad_(True)
    y = wide(torch.relu(plain(x)))
    y.backward(y.detach())
    return {"y": y.detach(), "dx": x.grad, "dw1": plain.weight.grad,
            "dw2": wide.weight.grad}


def on_device(plain, wide, x):
    return {name: value.cpu() for name, value in forward_backward(
        plain.to(DEVICE), wide.to(DEVICE), x.to(DEVICE)).items()}


torch.backends.cudnn.deterministic = True
torch.backends.cudnn.allow_tf32 = False
plain, wide, x = layers()
if what == "digest":
    found = on_device(plain, wide, x)
    print(hashlib.sha256(b"".join(found[name].numpy().tobytes()
                                  for name in sorted(found))).hexdigest()[:16])
    sys.exit(0)

rank, size = int(sys.argv[2]), int(sys.argv[3])


def timeline(call):
    """Prints what the device does in a call: begin and length in microseconds.
    """
    from torch.profiler import ProfilerActivity, profile
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU,
                             ProfilerActivity.CUDA]) as record:
        call()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        record.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    events = sorted((event for event in events if event.get("cat") in (
        "kernel", "gpu_memcpy", "gpu_memset")), key=lambda event: event["ts"])
    for event in events[:60]:
        print(f"time {event['ts'] - events[0]['ts']:9.1f} +{event['dur']:8.1f} "
              f"{event['name'][:80]}", flush=True)


def own_kernels(rank, size):
    """Functions of N x C x H x W that no library of NVIDIA's computes."""
    f = torch.nn.functional
    ops = {
        "interpolate": lambda x: f.interpolate(x, scale_factor=2.0,
                                               mode="bilinear"),
        "pad, reflect": lambda x: f.pad(x, (0, 0, 2, 2), mode="reflect"),
        "mean of the image": lambda x: x.mean((2, 3), keepdim=True)
        .expand_as(x),
        "group norm": lambda x: f.group_norm(x, 2),
        "max pooling, window 3": lambda x: f.max_pool2d(x, 3, 1, 1),
        "average pooling, window 3": lambda x: f.avg_pool2d(x, 3, 1, 1),
        "roll by a row": lambda x: torch.roll(x, 1, 2),
        "sum along H": lambda x: x.cumsum(2),
        "softmax along H": lambda x: x.softmax(2),
        "relu": torch.relu,
    }
    torch.manual_seed(7)
    x = torch.randn(2, 4, ROWS, COLUMNS)
    edge = [ROWS * r // size for r in range(size + 1)]
    for name, op in ops.items():
        whole = op(x.double())
        piece = op(x[:, :, edge[rank]:edge[rank + 1]].contiguous().to(DEVICE))
        # Of interpolation every row gives two, and padding adds four.
        scale = 2 if name == "interpolate" else 1
        added = 4 if name.startswith("pad") else 0
        mine = piece.cpu().double()
        want = whole[:, :, scale * edge[rank]:scale * edge[rank + 1] + added]
        same = mine.shape == want.shape and \
            (mine - want).abs().max().item() < 1e-4
        print(f"op {name}: " + ("as of the whole" if same else
                                "sees only the rank's piece"), flush=True)


if what == "ops":
    own_kernels(rank, size)
    sys.exit(0)
right = forward_backward(plain.double(), wide.double(), x.double())
plain, wide, x = layers()
first = [ROWS * r // size for r in range(size + 1)]
mine = slice(first[rank], first[rank + 1])
found = on_device(plain, wide, x[:, :, mine].contiguous())
bad = False
for name, value in found.items():
    want = right[name][:, :, mine] if name in ("y", "dx") else right[name]
    off = ((value.double() - want).abs().max() / want.abs().max()).item() \
        if value.shape == want.shape else float("inf")
    bad |= not off < 1e-4
    print(f"rank {rank}: {name} {'right' if off < 1e-4 else 'wrong'}, off by "
          f"{off:.1e} of the largest", flush=True)
if sys.argv[4:] == ["timeline"]:
    plain, wide = plain.to(DEVICE), wide.to(DEVICE)
    piece = x[:, :, mine].contiguous().to(DEVICE)
    timeline(lambda: forward_backward(plain, wide, piece))
sys.exit(1 if bad else 0)
