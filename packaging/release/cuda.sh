#!/bin/sh
# cuda.sh - the parts of CUDA that compile and link the backend for NVIDIA GPUs, pinned: wheels of PyPI
#
#     cuda.sh FOLDER     FOLDER/{cuda_*,cudnn,nccl,nvfatbin}/{include,lib}, FOLDER/{cuobjdump,licence}
#
# The wheels have 880 MB, most of it libraries of cuDNN and NCCL, of which only headers are kept.  Exit code 77: PyPI
# did not give them within half an hour.  What was downloaded is kept for the next try.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -eq 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
[ ! -e "$folder/licence" ] || exit 0
mkdir -p "$folder"

python3 -m venv --clear "$folder/venv"
timeout 1800 "$folder/venv/bin/python" -m pip download -q --disable-pip-version-check --no-input --retries 10 \
    --timeout 60 --cache-dir "$folder/pip" --no-deps --require-hashes --only-binary :all: --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux2014_x86_64 --platform manylinux_2_12_x86_64 --platform manylinux1_x86_64 \
    -d "$folder/wheels" -r "$here/requirements-cuda.txt" 2> "$folder/errors" || {
    cat "$folder/errors" >&2
    ! grep -q 'DO NOT MATCH THE HASHES' "$folder/errors" || exit 1 # other files than the pinned ones
    exit 77
}
python3 - "$folder" << 'END'
import glob
import os
import re
import sys
import zipfile

WANTED = r"nvidia/((?!cuda_cccl)\w+/include/.*|cuda_cccl/include/nv/.*|cu13/bin/cuobjdump|" \
         r"\w+/lib/(libcudart_static\.a|libnvrtc(-builtins)?\.so\.[0-9.]+|libnvfatbin\.so\.[0-9]+))"
folder = sys.argv[1]
for path in sorted(glob.glob(os.path.join(folder, "wheels", "*.whl"))):
    with zipfile.ZipFile(path) as wheel:
        names = [n for n in wheel.namelist() if re.fullmatch(WANTED, n) and not n.endswith("/")]
        for name in names:
            out = os.path.join(folder, name.removeprefix("nvidia/").removeprefix("cu13/bin/"))
            os.makedirs(os.path.dirname(out), exist_ok=True)
            with open(out, "wb") as f:
                f.write(wheel.read(name))
        if "/nvidia_cuda_runtime_" in path:
            text = wheel.read(next(n for n in wheel.namelist() if n.endswith("/License.txt")))
os.chmod(os.path.join(folder, "cuobjdump"), 0o755)
# The last file that is written.
with open(os.path.join(folder, "licence"), "wb") as f:
    f.write(text)
END
rm -rf "$folder/wheels" "$folder/venv" "$folder/pip" "$folder/errors"
