#!/usr/bin/env bash
# Whole processes, measured one after another on this machine. Needs python3, GNU time, hyperfine, a
# release build, the slices and the stand-in endpoint that lie beside the project.
#   benches/whole.sh [ANNALIST] [SHARED]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
annalist=$(realpath "${1:-$here/target/release/annalist}")
shared=$(realpath "${2:-$here/../shared}")
mock="${ANNALIST_MOCKLLM:-$here/target/stand-in/release/mockllm}"
work=$(mktemp -d)
cd "$work"
pid=""
stop() { [ -z "$pid" ] || kill "$pid" 2> /dev/null || true; pid=""; }
trap 'stop; rm -rf "$work"' EXIT
export ANNALIST__STORE__URL="sqlite:$work/annalist.db"

python3 - "$shared/bench/slices.jsonl" <<'P'
import json, sys
slices = [json.loads(line) for line in open(sys.argv[1])]
def session(name, slice, first):
    said = [{"role": m["role"], "content": m["text"]} for m in slice["messages"]]
    return json.dumps({"conversation_id": name, "messages": first + said}, ensure_ascii=False)
with open("slices500.jsonl", "w") as out:
    for s in slices[:500]:
        print(session(s["slice_id"], s, []), file=out)
with open("slices640.jsonl", "w") as out:
    for n in range(640):
        first = [{"role": "user", "content": f"variant {n}"}]
        print(session(f"v{n}", slices[n % len(slices)], first), file=out)
P

start() {
  stop
  rm -f port
  "$mock" --port 0 --port-file port --latency "$1" > /dev/null 2>&1 &
  pid=$!
  until [ -s port ]; do :; done
  export ANNALIST__MODEL__BASE_URL="http://127.0.0.1:$(cat port)/v1"
}

measure() { # name, command…
  local name=$1; shift
  for run in 1 2 3 4 5; do
    rm -f annalist.db*
    /usr/bin/time -f "$name: %e s wall, %U + %S s CPU, %M KiB" "$@" 2>&1 > /dev/null | tail -1
  done
}

start 0
measure "500 slices, endpoint at once" "$annalist" replay slices500.jsonl --concurrency 16 --json
start 200
measure "640 slices, 200 ms, 64 at a time" "$annalist" replay slices640.jsonl --concurrency 64 --json
stop

mkdir big
n=0
while [ "$(du -sm big | cut -f1)" -lt 1024 ]; do
  for file in "$shared"/transcripts/claude-code/*.jsonl "$shared"/transcripts/large/claude*.jsonl; do
    sed "s/\"sessionId\":\"/&$n-/g; s/\"uuid\":\"/&$n-/g; s/\"parentUuid\":\"/&$n-/g" "$file" \
      > "big/$n.$(basename "$file")"
  done
  n=$((n + 1))
done
bytes=$(du -sb big | cut -f1)
echo "folder of $bytes bytes of Claude Code JSONL"
measure "replay --dry-run of it" taskset -c 0 "$annalist" replay big --dry-run
hyperfine -N --warmup 10 "$annalist --help" 2> /dev/null | grep -E "Time|Range"
