# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import Executable, depends_on, license, variant, version


class ChexTools(AutotoolsPackage, CudaPackage):
    """Converts chest X-ray data sets (NIH ChestX-ray14) to TFRecord shards of constant
    record length, checks them, and trains DenseNet-121 or ResNet-50 on them."""

    homepage = "https://example.invalid/chex-tools"
    url = "https://example.invalid/chex-tools/releases/download/v0.1.0/chex-tools-0.1.0.tar.xz"

    license("Apache-2.0")

    # replace by the line of the release's SHA256SUMS
    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("mpi", default=True, description="Several processes (ranks)")
    variant("libarchive", default=True, description="Images straight from archives")
    variant("nccl", default=False, description="Several GPUs", when="+cuda")
    variant("cudnn", default=False, description="Convolutions by cuDNN", when="+cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libpng@1.6:")
    depends_on("libjpeg-turbo@1.5:")
    depends_on("zlib-api")
    depends_on("protobuf-c@1.3:")
    depends_on("jansson@2.10:")
    depends_on("xxhash@0.8:")
    depends_on("isa-l")
    depends_on("libarchive@3: compression=bz2lib,lzma,zlib,zstd", when="+libarchive")
    depends_on("xz", when="+libarchive")
    depends_on("mpi@3:", when="+mpi")
    depends_on("cuda@11.8:13", when="+cuda")
    depends_on("nccl@2.14:", when="+nccl")
    depends_on("cudnn@9.11:", when="+cudnn")
    depends_on("check@0.13:", type="test")
    depends_on("python@3.9:", type="test")
    depends_on("py-numpy", type="test")

    def configure_args(self):
        def yes_or_no(variant):
            return "yes" if self.spec.satisfies(f"+{variant}") else "no"

        def prefix_or_no(variant):
            return self.spec[variant].prefix if self.spec.satisfies(f"+{variant}") else "no"

        args = [
            "--with-libcsv=included",  # Spack has no libcsv
            f"--with-libarchive={yes_or_no('libarchive')}",
            f"--with-mpi={yes_or_no('mpi')}",
            f"--with-cuda={prefix_or_no('cuda')}",
            f"--with-nccl={prefix_or_no('nccl')}",
            f"--with-cudnn={prefix_or_no('cudnn')}",
        ]
        if self.spec.satisfies("+mpi"):
            args.append(f"MPICC={self.spec['mpi'].mpicc}")
        archs = self.spec.variants["cuda_arch"].value if self.spec.satisfies("+cuda") else ("none",)
        if "none" not in archs:
            args.append(f"CUDA_ARCHS={' '.join(archs)}")
        return args

    def test_roundtrip(self):
        """synthetic images become shards, whose checksums are verified"""

        def tool(name):
            return Executable(self.prefix.bin.join(name))

        tool("chex-synth")("-q", "-n", "60", "--size", "128", "-o", "demo")
        labels = "demo/Data_Entry_2017_v2020.csv"
        tool("chex-convert")("-q", "-i", "demo/images", "-l", labels, "-o", "shards")
        tool("chex-inspect")("check", "--full", "shards")
        tool("chex-train")("--version")
        tool("chex-predict")("--version")
