#!/usr/bin/env bash
# Every fuzz target for SECONDS (600), one after another, or those that are named. Seeds are the project's fixtures and
# what lies in ../shared; what is found stays in fuzz/corpus. Needs the nightly toolchain and cargo-fuzz.
#   fuzz/run.sh [SECONDS] [TARGET…]
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-600}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(basename -s .rs fuzz_targets/*.rs)
folders=(../tests/fixtures ../examples)
[ ! -d ../../shared ] || folders+=(../../shared/{transcripts,real-clients,answers,secrets,consolidation,golden})
failed=()
for target in "${targets[@]}"; do
  mkdir -p "corpus/$target"
  if [ -z "$(ls -A "corpus/$target")" ]; then
    # The first byte is not of the file: `source` takes it for itself.
    find "${folders[@]}" -type f -size -48k -print0 | while IFS= read -r -d '' file; do
      { printf '\0'; cat "$file"; } > "corpus/$target/$(printf %s "$file" | sha1sum | cut -c1-16)"
    done
  fi
  echo "== $target"
  # Without the sanitizer of addresses: the crate forbids unsafe code.
  log="corpus/$target.log"
  options=(-max_total_time="$seconds" -max_len=65536 -timeout=25 -rss_limit_mb=4096 -print_final_stats=1)
  cargo +nightly fuzz run -O -s none "$target" -- "${options[@]}" > "$log" 2>&1 || failed+=("$target")
  grep -E 'panicked|Test unit|SUMMARY|Done|number_of_executed|INITED' "$log" || tail -3 "$log"
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}; fuzz/artifacts has the inputs"; exit 1; }
