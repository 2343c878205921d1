#!/usr/bin/env bash
# Every C++ file is formatted as .clang-format says. Usage: format_test.sh SOURCE_DIR
set -euo pipefail
cd "$1"
mapfile -t files < <(find sim traces platforms partitioners tests -name '*.cpp' -o -name '*.hpp' | sort)
[ "${#files[@]}" -gt 20 ] || { echo "only ${#files[@]} files found" >&2; exit 1; }
clang-format --dry-run --Werror "${files[@]}"
echo "${#files[@]} files are well formatted"
