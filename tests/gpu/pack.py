# SPDX-License-Identifier: Apache-2.0
"""Makes a folder with all files that tests/gpu/run needs from the tree and the
build, in the same layout, to copy to a machine that has only a GPU."""
import glob
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
SCRIPTS = ["tests/gpu/*", "tests/rank_lines.py",
           "tests/equivalence/driver/run", "tests/equivalence/driver/*.py",
           "tests/equivalence/driver/named/*.py",
           "tests/equivalence/families/*.py",
           "tests/clients/check", "tests/clients/*.npy",
           "tests/clients/nets/check", "tests/clients/nets/*.rules",
           "tools/bench"]
PROGRAMS = ["tools/sundog", "interpose/libsundog.so",
            "interpose/sundog-libraries", "tests/equivalence/driver/op_case",
            "tests/equivalence/driver/libwitness.so", "tests/clients/*",
            "tests/bench/*", "tests/gpu/probe_*", "tests/host/test_*",
            "tests/host/*/test_*"]
# Libraries that the machine may lack; it must have the C library.
CARRIED = r"(libjansson|libsmartcols)\.so"


def is_object(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def copy(path, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(path, target)
    if shutil.which("strip") and is_object(target):
        subprocess.run(["strip", "--strip-debug", target], check=False)


def pack(build, folder):
    if os.path.exists(folder):
        raise SystemExit(f"gpu: {folder} exists")
    for pattern in SCRIPTS:
        for path in glob.glob(os.path.join(ROOT, pattern)):
            if os.path.isfile(path):
                copy(path, os.path.join(folder, os.path.relpath(path, ROOT)))
    for pattern in PROGRAMS:
        for path in glob.glob(os.path.join(build, pattern)):
            if os.path.isfile(path) and is_object(path):
                copy(path, os.path.join(folder, "build",
                                        os.path.relpath(path, build)))
    needed = subprocess.run(["ldd", os.path.join(build, "tools/sundog")],
                            capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"=> (\S+) \(", needed):
        if re.search(CARRIED, path):
            copy(path, os.path.join(folder, "build/lib",
                                    os.path.basename(path)))
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always",
                             "--dirty"], capture_output=True, text=True,
                            check=False).stdout
    with open(os.path.join(folder, "build/commit"), "w") as file:
        file.write(commit)
    used = sum(os.path.getsize(os.path.join(at, name))
               for at, _, names in os.walk(folder) for name in names)
    print(f"{folder}: {used / 2 ** 20:.0f} MiB; there: tests/gpu/run")
    return 0
