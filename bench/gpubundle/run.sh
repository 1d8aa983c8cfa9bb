#!/bin/sh
# Tests and measures Mercer on this machine's GPU. It needs the NVIDIA driver and,
# for more than the driver's level, the CUDA libraries; no Go, no compiler.
#
#   ./run [--size tiny|quick|full] [--out FOLDER]
#
# It prints what it does, a short table last, and writes results.json and pages to
# the folder (results-DATE beside this script by default). MERCER_CUDA_LIBDIR names
# a folder of CUDA libraries, or of the simulated ones.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec "$here/gpurun" --bundle "$here" "$@"
