#!/usr/bin/env bash
# Judge FILES, or the .cu files that differ from BASE. Ends with 1 if one is wrong. No verdict is a warning.
set -u
if [ -n "${FILES:-}" ]; then
  read -r -a files <<<"$FILES"
else
  if ! changed=$(git diff --name-only --diff-filter=AMR "$BASE...HEAD" -- '*.cu'); then
    echo "::error::cuffi judge: cannot compare with $BASE; check out with fetch-depth: 0"
    exit 2
  fi
  mapfile -t files <<<"$changed"
fi
wrong=0
for file in "${files[@]}"; do
  [ -n "$file" ] || continue
  python -m cuffi.judge --annotate "$file"
  status=$?
  if [ "$status" != 0 ] && [ "$status" != 3 ]; then wrong=1; fi
done
exit "$wrong"
