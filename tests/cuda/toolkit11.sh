#!/bin/sh
# toolkit11.sh - makes a folder with the parts of the CUDA 11.8 toolkit that chex-train needs, to compile for a V100
#
#     tests/cuda/toolkit11.sh FOLDER       # then: configure --with-cuda=yes NVCC="FOLDER/bin/nvcc -ccbin g++-11"
#
# Nothing is installed into the system.  The compiler is Debian's package nvidia-cuda-toolkit (component non-free, 84
# MB), which apt downloads with its own lists and sources in FOLDER.  The headers and the runtime are from PyPI
# (tests/requirements-cuda11.txt).  nvcc 11.8 needs g++ 11 or older.  The static runtime is in a package of 774 MB; in
# its place, lib64/libcudart_static.a is a linker script that links PyPI's shared library.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/setup.sh
. "$source/tests/setup.sh"
requirements=$source/tests/requirements-cuda11.txt

mkdir -p "$1"
cd "$1"
folder=$PWD
! cmp -s "$requirements" complete || exit 0
rm -rf apt debian venv bin nvvm include lib64
mkdir -p apt/lists/partial apt/archives/partial bin nvvm/bin include lib64

# The mirror and the release of the system's own packages.
apt-get indextargets --format "\$(REPO_URI) \$(CODENAME)" \
    'Identifier: Packages' 'Origin: Debian' 'Component: main' > apt/targets
read -r uri release < apt/targets
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $release non-free" > apt/sources.list
set -- -qq -oAPT::Sandbox::User=root \
    -oDir::Etc::SourceList="$folder/apt/sources.list" -oDir::Etc::SourceParts=/dev/null \
    -oDir::State::Lists="$folder/apt/lists" -oDir::Cache="$folder/apt"
apt-get "$@" update
(cd apt && apt-get "$@" download nvidia-cuda-toolkit)
dpkg -x apt/nvidia-cuda-toolkit_*.deb debian
rm apt/nvidia-cuda-toolkit_*.deb
venv=$folder/venv
mkdir venv
need_modules "$requirements"

for program in cudafe++ ptxas fatbinary nvlink bin2c; do
    ln -s "../debian/usr/bin/$program" bin/
done
cp debian/usr/lib/nvidia-cuda-toolkit/bin/nvcc bin/ # a link would look for nvcc.profile at its target
ln -s ../../debian/usr/lib/nvidia-cuda-toolkit/bin/cicc nvvm/bin/
ln -s ../debian/usr/lib/nvidia-cuda-toolkit/libdevice nvvm/libdevice
for wheel in cuda_runtime cuda_nvcc cuda_cccl; do
    cp -r venv/lib/python3*/site-packages/nvidia/$wheel/include/. include/
done
cp venv/lib/python3*/site-packages/nvidia/cuda_runtime/lib/libcudart.so.11.0 lib64/
echo "INPUT($folder/lib64/libcudart.so.11.0)" > lib64/libcudart_static.a
cat > bin/nvcc.profile <<'END'
TOP = $(_HERE_)/..
CICC_PATH = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(CICC_PATH):$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
END
cp "$requirements" complete
