#!/bin/sh
# Times `annalist why` on a repository of 10,000 commits, with a line that the first of them wrote, during the example
# session that wrote its file.
set -eu
annalist=$(realpath "${1:-target/release/annalist}")
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
git init -q -b durable-queue
awk 'BEGIN {
    for (n = 0; n < 10000; n++) {
        name = n ? "src/file" n % 50 ".rs" : "src/queue.rs"
        printf "commit refs/heads/durable-queue\ncommitter Ana <ana@example.com> %d +0000\n", 1780991100 + n
        printf "data 5\nCount\nM 100644 inline %s\ndata 13\n// line %05d\n\n", name, n
    }
}' | git fast-import --quiet
git reset -q --hard
"$annalist" replay "$root/examples/sessions" --cassette "$root/examples/cassette" --namespace . >/dev/null 2>&1
for run in 1 2 3 4 5; do
    /usr/bin/env time -f '%e s, %U s user, %S s system, %M KiB' "$annalist" why src/queue.rs:1 >/dev/null
done
