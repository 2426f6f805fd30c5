#!/bin/sh
# Make .venv with the first suitable Python: the one asked for, else one by name.
#     sh tools/make_venv.sh python3
for python in "$1" python3.13 python3.12 python3.11; do
  if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    "$python" -m venv .venv && exit 0
    echo "$python could not make a virtual environment; on Debian and Ubuntu the package python3-venv is missing" >&2
    exit 1
  fi
done
echo "no suitable Python: \"$1\" is $("$1" --version 2>&1 || true); expected Python 3.11, 3.12 or 3.13" >&2
echo "install one and name it: make book PYTHON=/path/to/python3.12" >&2
exit 1
