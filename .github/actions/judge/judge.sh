#!/usr/bin/env bash
# Judge FILES, or the .cu files that differ from BASE, or include what does. Ends with 1 if one is wrong. No verdict is a
# warning. SARIF is a folder for files of it.
set -u
if [ -n "${FILES:-}" ]; then
  read -r -a files <<<"$FILES"
else
  if ! git rev-parse --quiet --verify "$BASE^{commit}" >/dev/null; then
    echo "::error::cuffi judge: cannot compare with $BASE; check out with fetch-depth: 0"
    exit 2
  fi
  cd "$(git rev-parse --show-toplevel)" || exit 2
  # -z: names as they are, whatever they have in them. A changed header stands for the files that include it, and for those
  # that include these.
  mapfile -d '' -t changed < <(git diff -z --name-only --diff-filter=AMR "$BASE...HEAD" -- '*.cu' '*.cuh' '*.h' '*.hpp')
  declare -A seen=()
  files=()
  while [ "${#changed[@]}" != 0 ]; do
    file=${changed[0]}
    changed=("${changed[@]:1}")
    [ -z "${seen[$file]:-}" ] || continue
    seen[$file]=1
    case $file in *.cu) files+=("$file"); continue ;; esac
    name=$(basename "$file" | sed 's/[][\.*^$+?(){}|]/\\&/g')
    mapfile -d '' -t those < <(git grep -zlE "^[[:space:]]*#[[:space:]]*include.*[\"</]$name[\">]" -- '*.cu' '*.cuh' '*.h' '*.hpp')
    changed+=("${those[@]}")
  done
fi
[ -z "${SARIF:-}" ] || mkdir -p "$SARIF"
wrong=0
for file in "${files[@]}"; do
  [ -n "$file" ] || continue
  said=$(python -m cuffi.judge --annotate ${SARIF:+--sarif "$SARIF/$(printf '%s' "$file" | sha256sum | cut -c1-16).sarif"} "$file")
  status=$?
  printf '%s\n' "$said"
  [ -z "${GITHUB_STEP_SUMMARY:-}" ] || printf '```\n%s\n```\n' "$(grep -v '^::' <<<"$said")" >>"$GITHUB_STEP_SUMMARY"
  if [ "$status" != 0 ] && [ "$status" != 3 ]; then wrong=1; fi
done
exit "$wrong"
