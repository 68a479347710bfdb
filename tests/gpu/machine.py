# SPDX-License-Identifier: Apache-2.0
"""Finds the machine's GPUs, NVIDIA's libraries and their versions, and makes a
build folder whose programs run on it."""
import glob
import os
import re
import shutil
import subprocess

# Programs are linked to these libraries; libraries that these load are beside
# them.
NEEDED = ("libcudart.so.13", "libcudnn.so.9", "libcublas.so.13",
          "libcublasLt.so.13", "libnccl.so.2")
FAMILIES = ("libcudart", "libcudnn", "libcublas", "libnccl", "libnvrtc",
            "libnvJitLink")


class NoGpu(Exception):
    """Says why there is nothing to test."""


def output_of(words, env=None, seconds=60):
    """Returns what a command prints; empty if it cannot run."""
    try:
        return subprocess.run(words, env=env, capture_output=True, text=True,
                              timeout=seconds).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def has_driver():
    """Returns whether a driver is installed, like `sundog run --device
    cuda`."""
    return os.path.exists("/dev/nvidiactl") or \
        os.path.exists("/proc/driver/nvidia/version")


def library_folders(build):
    """Returns folders that may have NVIDIA's libraries; the linker's come
    first."""
    cache = re.findall(r"=> (.*)/lib(?:cudart|cudnn|cublas|nccl)\.so\.\d+$",
                       output_of(["/sbin/ldconfig", "-p"]), re.M)
    asked = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda",
             os.path.join(build, "cuda")]
    # NVIDIA's Python packages, which PyTorch uses.
    wheels = output_of(["python3", "-c", "import sys; print(*sys.path, "
                        "sep='\\n')"]).splitlines()
    return [folder for folder in
            [*asked, *cache,
             *(os.path.join(home, lib) for home in homes if home
               for lib in ("lib64", "lib")),
             *(lib for path in wheels if path
               for lib in sorted(glob.glob(path + "/nvidia/*/lib")))]
            if os.path.isdir(folder) and
            # The host device's libraries have the same names.
            not re.search("/(src|sundog)/host", os.path.realpath(folder))]


def link_libraries(build, folder):
    """Makes a folder of links to NVIDIA's libraries; returns the sonames that
    are missing."""
    os.makedirs(folder)
    for place in library_folders(build):
        for path in sorted(glob.glob(place + "/lib*.so*")):
            name = os.path.basename(path)
            if name.startswith(FAMILIES) and \
                    not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.abspath(path), os.path.join(folder, name))
    return [name for name in NEEDED
            if not os.path.exists(os.path.join(folder, name))]


class Machine:
    """device: host or cuda. build: a folder like the build folder, but its
    `sundog` runs on the device and its src/host/lib has the device's libraries,
    so that tests of the host device test this device. env: for programs that
    run there."""

    def __init__(self, build, device):
        self.device, self.real = device, os.path.realpath(build)
        self.build = os.path.join(self.real, "gpu-" + device)
        self.logs = os.path.join(self.build, "logs")
        self.sundog = os.path.join(self.build, "tools/sundog")
        if not os.path.exists(os.path.join(self.real, "tools/sundog")):
            raise SystemExit(f"gpu: no sundog in {self.real}: run "
                             "tools/test --setup-only, or see README.md")
        shutil.rmtree(self.build, ignore_errors=True)
        os.makedirs(self.logs)
        self.lay_out()
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("SUNDOG_") and k != "LD_PRELOAD"}
        carried = os.path.join(self.real, "lib")  # written by --pack
        self.env.update(
            LC_ALL="C",
            # TF32 would round to 10 bits; results are compared with float64.
            NVIDIA_TF32_OVERRIDE="0",
            LD_LIBRARY_PATH=":".join(
                [self.libraries, carried,
                 *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]))
        self.env.setdefault("OMP_NUM_THREADS", "1")
        self.facts = self.look()
        self.gpus = self.count_gpus()
        self.write_command()

    @property
    def libraries(self):
        return os.path.join(self.build, "src/host/lib")

    def lay_out(self):
        for name in ("interpose", "tests"):
            os.symlink(os.path.join(self.real, name),
                       os.path.join(self.build, name))
        os.makedirs(os.path.join(self.build, "src/host"))
        os.makedirs(os.path.join(self.build, "tools"))
        if self.device == "host":
            os.symlink(os.path.join(self.real, "src/host/lib"), self.libraries)
            self.missing = []
        else:
            self.missing = link_libraries(self.real, self.libraries)

    def write_command(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(self.sundog, "w") as script:
            print("#!/bin/bash", f"exec '{here}/sharing' "
                  f"'{self.real}/tools/sundog' {self.device} "
                  f"{','.join(self.gpus)} \"$@\"", sep="\n", file=script)
        os.chmod(self.sundog, 0o755)

    def look(self):
        """Returns {what: version}, with the words of `sundog doctor`."""
        facts = {}
        helper = os.path.join(self.real, "interpose/sundog-libraries")
        for line in output_of([helper], self.env).splitlines():
            name, number, *rest = line.split("\t")
            if name in ("cudart", "driver"):
                facts[name] = f"{int(number) // 1000}.{int(number) % 1000 // 10}"
            elif name in ("cudnn", "nccl"):
                n = int(number)
                facts[name] = f"{n // 10000}.{n % 10000 // 100}.{n % 100}"
            elif name == "devices":
                facts["devices"], facts["gpu"] = number, rest[0]
            elif name == "nodevice":
                facts["nodevice"] = number
        seen = output_of(["nvidia-smi", "--query-gpu=name,driver_version,"
                          "memory.total", "--format=csv,noheader"], self.env)
        if seen and "failed" not in seen:
            facts["gpu"], facts["kernel driver"], facts["memory"] = (
                word.strip() for word in seen.splitlines()[0].split(",")[:3])
        torch = output_of(["python3", "-c", "import torch; print("
                           "torch.__version__)"], self.env, 120).strip()
        if torch:
            facts["torch"] = torch
        commit = output_of(["git", "-C", os.path.dirname(__file__), "describe",
                            "--always", "--dirty"]).strip()
        facts["sundog"] = commit or self.carried_commit()
        return facts

    def carried_commit(self):
        path = os.path.join(self.real, "commit")
        return open(path).read().strip() if os.path.exists(path) else "?"

    def count_gpus(self):
        """Returns the names of the GPUs that ranks can get."""
        if self.device == "host":
            return ["0"]
        count = int(self.facts.get("devices", 0))
        if count == 0 or not has_driver():
            raise NoGpu(self.reason())
        if self.missing:
            raise NoGpu(f"{', '.join(self.missing)} not found: install CUDA 13 "
                        "with cuDNN 9 and NCCL, or name its folder in CUDA_HOME")
        asked = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return asked.split(",") if asked else [str(i) for i in range(count)]

    def reason(self):
        if not has_driver():
            return "this machine has no NVIDIA driver"
        if "libcudart.so.13" in self.missing:
            return ("there is a driver, but libcudart.so.13 was not found "
                    "(programs here are built for CUDA 13)")
        return ("the CUDA runtime has no device: " +
                self.facts.get("nodevice", "it does not answer"))

    def says(self):
        f = self.facts
        name = f.get("gpu", "?")
        if self.device != "host" and len(self.gpus) > 1:
            name = f"{len(self.gpus)} x {name}"
        return name, ", ".join(
            f"{what} {f[key]}" for what, key in
            (("driver", "kernel driver"), ("of CUDA", "driver"),
             ("CUDA", "cudart"), ("cuDNN", "cudnn"), ("NCCL", "nccl"),
             ("memory", "memory"), ("PyTorch", "torch"), ("sundog", "sundog"))
            if key in f)
