#!/bin/sh
# Make `rocprofv3` available in an image:  install_rocprofiler.sh PACKAGE   (empty: leave the image as it is)
set -eu
package=${1:-}
PATH=$PATH:/opt/rocm/bin

if command -v rocprofv3 >/dev/null; then
  echo "rocprofv3 is there already: $(command -v rocprofv3)"
  exit 0
fi
if [ -z "$package" ]; then
  echo "rocprofv3 is not there, and ROCPROFILER_PACKAGE is empty: none is installed"
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
apt-get -q update
if ! apt-cache show "$package" >/dev/null 2>&1; then
  echo "$package is not in this image's apt sources: start from a ROCm image, or add AMD's repository to the base" >&2
  exit 1
fi
apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$package"
rm -rf /var/lib/apt/lists/*
command -v rocprofv3
