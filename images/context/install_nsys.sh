#!/bin/sh
# Make `nsys` available in an image:  install_nsys.sh VERSION   (empty: leave the image as it is)
set -eu
version=${1:-}

if command -v nsys >/dev/null; then
  echo "nsys is there already: $(nsys --version)"
  exit 0
fi
if [ -z "$version" ]; then
  echo "nsys is not there, and NSYS_VERSION is empty: none is installed"
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
# shellcheck source=/dev/null
. /etc/os-release
case "$ID" in
  ubuntu)
    repository=https://developer.download.nvidia.com/devtools/repos/ubuntu$(echo "$VERSION_ID" | tr -d .)/$(dpkg --print-architecture)
    apt-get -q update
    apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends ca-certificates curl
    curl -fsSL "$repository/nvidia.pub" -o /usr/share/keyrings/nvidia-devtools.asc
    echo "deb [signed-by=/usr/share/keyrings/nvidia-devtools.asc] $repository/ /" >/etc/apt/sources.list.d/nvidia-devtools.list
    apt-get -q update
    apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends "nsight-systems-cli-$version"
    if ! command -v nsys >/dev/null; then ln -s "/opt/nvidia/nsight-systems-cli/$version/bin/nsys" /usr/local/bin/nsys; fi
    ;;
  debian)
    apt-get -q update
    if ! apt-cache show nsight-systems >/dev/null 2>&1; then
      echo "nsight-systems is not in this image's apt sources: add the component non-free" >&2
      exit 1
    fi
    apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends nsight-systems
    # Debian splits the tree in two; nsys looks for its importer beside its recorder and, without it, leaves a
    # .qdstrm instead of a report.
    for recorder in /usr/lib/*-linux-gnu/nsight-systems; do
      importer=$(dirname "$(dirname "$recorder")")/nsight-systems
      for host in "$importer"/host-linux-*; do
        [ -e "$recorder/$(basename "$host")" ] || ln -s "$host" "$recorder/"
      done
    done
    ;;
  *)
    echo "no known source of Nsight Systems for $PRETTY_NAME: start from a base that has nsys" >&2
    exit 1
    ;;
esac
rm -rf /var/lib/apt/lists/*
nsys --version
