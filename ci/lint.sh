#!/usr/bin/env bash
# All checks that do not run the code. Needs `pip install -e '.[test,lint]'`.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() {
    printf -- '--- %s\n' "$*"
    "$@" || failed+=("$*")
}
check ruff check .
check ruff format --check .
check mypy
check lint-imports --no-logo
check python ci/docstrings.py
check python ci/sizes.py "$@"

if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
echo 'lint passed'
