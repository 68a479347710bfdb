# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that does not use sundog's functions: a strided and a plain
convolution, and their gradients.

usage: torch_check.py digest | legacy|graph RANK SIZE

digest prints a hash of its results. With a rank, the program has its rows of
the input, and compares its results with those of PyTorch's CPU code for the
whole input: "rank 0: y right ..." or "... wrong ...". legacy and graph select the
interface of cuDNN that PyTorch uses.
"""
import hashlib
import os
import sys

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
sys.exit(1 if bad else 0)
