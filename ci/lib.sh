# Shared by the commands in this folder: `source` it, then call `environment [EXTRA]`.
#
# DASKCLUSTER_VENV         the virtual environment, by default .venv in the checkout
# DASKCLUSTER_PYTHON       the Python that makes it, by default the first one found that is new enough
# DASKCLUSTER_CONSTRAINTS  the file of pins, by default ci/constraints.txt
# Relative paths start at the checkout.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

from_root() { # a path as seen from the checkout
    case $1 in
        /*) printf '%s\n' "$1" ;;
        *) printf '%s\n' "$root/$1" ;;
    esac
}

venv=$(from_root "${DASKCLUSTER_VENV:-.venv}")
constraints=$(from_root "${DASKCLUSTER_CONSTRAINTS:-ci/constraints.txt}")

step() { printf '\n==> %s\n' "$*" >&2; }

fail() {
    printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
    exit 1
}

# A version manager may leave a `python3.13` on the PATH that starts nothing, and Debian ships Python without
# venv: so each candidate is started and asked.
find_python() {
    local candidate
    for candidate in ${DASKCLUSTER_PYTHON:+"$DASKCLUSTER_PYTHON"} python3 python python3.{14,13,12,11}; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v -- "$candidate"
            return
        fi
    done
    fail "needs Python 3.11 or newer with the venv module, and found none on the PATH." \
        "Install one (on Debian and Ubuntu: apt install python3 python3-venv) or name it: DASKCLUSTER_PYTHON=/path/to/python3 $0"
}

# Make the environment and install the checkout into it with what all commands need, and the extra named in $1
# (editable, pinned). The stamp holds a checksum of all that the result depends on, so the next call returns at once.
environment() {
    local extras=plot,convert,test,docs,reproduction${1:+,$1} stamp=$venv/.daskcluster-stamp wanted python
    [[ -r $constraints ]] || fail "no file of pins at $constraints (DASKCLUSTER_CONSTRAINTS)"
    wanted=$({ printf '%s %s\n' "$root" "$extras"; cat -- "$root/pyproject.toml" "$constraints"; } | cksum)
    if [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; then
        return
    fi
    if [[ ! -x $venv/bin/python ]]; then
        if [[ -e $venv && -n $(ls -A -- "$venv") && ! -f $venv/pyvenv.cfg ]]; then
            fail "$venv is there and is no virtual environment; name another with DASKCLUSTER_VENV"
        fi
        python=$(find_python)
        step "environment: $venv ($("$python" --version))"
        "$python" -m venv --clear -- "$venv"
    fi
    rm -f -- "$stamp"
    step "install: daskcluster[$extras] with the pins of ${constraints#"$root"/}"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable "$root[$extras]" --constraint "$constraints"
    printf '%s\n' "$wanted" >"$stamp"
}

# Install a browser for the tests that look at pages, where that is ours to do: as root, on CI, on Debian and its kin.
# Without one these tests are skipped, and nothing else changes.
browser() {
    if command -v chromium chromium-browser google-chrome >/dev/null || [[ -n ${DASKCLUSTER_BROWSER:-} ]]; then
        return
    fi
    if [[ -z ${CI:-} || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        step "browser: none, tests that look at pages are left out"
        return
    fi
    step "browser: apt-get install chromium"
    export DEBIAN_FRONTEND=noninteractive
    { timeout 300 apt-get update -qq &&
        timeout 600 apt-get install -y -qq --no-install-recommends chromium; } >/dev/null ||
        step "WARNING: no browser could be installed; tests that look at pages are left out"
}
