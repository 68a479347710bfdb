# SPDX-License-Identifier: Apache-2.0
"""Builds sundog with Spack 1.0 or later:

    spack repo add tools/packaging/spack_repo/sundog
    spack dev-build sundog@0.1.0              # of a checkout, or an archive
"""
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Sundog(MesonPackage):
    """Makes one unmodified cuDNN program run over several GPUs: libsundog.so
    is preloaded, and tensors that are split over processes make convolutions,
    attention, norms and products operations over all of them."""

    # The archive that `meson dist` makes is put into the current folder.
    manual_download = True
    url = "file://{0}/sundog-0.1.0.tar.xz".format(os.getcwd())

    license("Apache-2.0", checked_by="sundog")

    version("0.1.0")

    variant("pmix", default=False, description="libpmix, by which ranks meet "
            "under srun --mpi=pmix and mpirun")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("binutils", type="build")
    depends_on("uthash", type="build")

    # Linked into libsundog.so, which must need nothing but libc.
    depends_on("libffi", type="build")
    depends_on("libinih default_library=static", type="build")
    # Of the command.
    depends_on("jansson@2.12:")
    depends_on("util-linux")  # libsmartcols
    # Of the host device. oneDNN 3 has other functions in C.
    depends_on("onednn@2.5:2 cpu_runtime=omp")
    # Headers only: a program brings its own libraries, of CUDA 12, too.
    depends_on("cuda@13", type="build")
    depends_on("cudnn@9.18:9", type="build")
    depends_on("nccl@2.27:", type="build")
    depends_on("pmix@3:", type="run", when="+pmix")

    conflicts("platform=darwin", msg="sundog works by Linux's dynamic linker")
    conflicts("platform=windows", msg="sundog works by Linux's dynamic linker")
    for family in ("ppc64le", "riscv64"):
        conflicts("target={0}:".format(family),
                  msg="sundog knows x86_64 and aarch64")

    def meson_args(self):
        return ["-Dtests=disabled", "-Dtoolkit=" + ":".join(
            str(self.spec[name].prefix) for name in ("cuda", "cudnn", "nccl"))]

    def setup_run_environment(self, env):
        # The helper that asks PMIx loads it by name.
        if self.spec.satisfies("+pmix"):
            env.prepend_path("LD_LIBRARY_PATH", self.spec["pmix"].prefix.lib)

    def test_host_device(self):
        """a rank starts on the host device"""
        sundog = which(self.prefix.bin.sundog)
        out = sundog("run", "--device", "host", "-n", "1", "--", "echo",
                     "rank {rank}", output=str.split)
        assert "rank 0" in out
