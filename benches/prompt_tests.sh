#!/usr/bin/env bash
# 500 prompt tests offline as a whole process: copies of the shipped cases, each in a folder of its own. Needs
# GNU time and a release build.
#   benches/prompt_tests.sh [ANNALIST]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
annalist=$(realpath "${1:-$here/target/release/annalist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

made=0
for round in $(seq 100); do
  for case in "$here"/tests/fixtures/cases/*/; do
    [ "$made" -lt 500 ] || break 2
    mkdir -p "cases/$round"
    cp -r "$case" "cases/$round/"
    made=$((made + 1))
  done
done

for run in 1 2 3 4 5; do
  /usr/bin/time -f "500 cases: %e s wall, %U + %S s CPU, %M KiB" \
    "$annalist" test cases --json report.json --html page.html > table.txt 2> said.txt
  tail -1 said.txt
done
tail -1 table.txt
ls -l page.html | awk '{print "page.html: " $5 " bytes"}'
