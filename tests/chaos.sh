#!/usr/bin/env bash
# Kills workers at random moments, several at a time on one store, and checks what is left: every entry is
# covered, each record exists once, and the endpoint saw at most one call more for each kill.
#   tests/chaos.sh [KILLS [STORE_URL [WORKERS [JOBS]]]]
# ANNALIST and ANNALIST_MOCKLLM name the two programs; RESTART a command that restarts the database, done
# at every fiftieth kill. Needs python3, curl, and the stand-in endpoint that `.ci/run` builds where it lies
# beside the project.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
kills=${1:-200}
workers=${3:-4}
jobs=${4:-$((kills * 40 + 40))}
annalist=${ANNALIST:-$here/target/release/annalist}
mock=${ANNALIST_MOCKLLM:-$here/target/stand-in/release/mockllm}
work=$(mktemp -d)
export ANNALIST__STORE__URL="${2:-sqlite:$work/annalist.db}"
cd "$work"
"$mock" --port 0 --port-file port --latency 20 > /dev/null 2>&1 &
endpoint=$!
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
until [ -s port ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat port)
export ANNALIST__MODEL__BASE_URL=$url/v1 ANNALIST__MODEL__CONCURRENCY=1
export ANNALIST__SLICE__TOKENS=400 ANNALIST__SLICE__TOOL_TOKENS=100
# Consolidation by rule only, so that every call is that of a job.
export ANNALIST__QUEUE__ATTEMPTS_MAX=100 ANNALIST__CONSOLIDATE__MODEL=
# What a killed worker held shall not be waited for long; a lease that short may run out under load.
[ "$kills" = 0 ] || export ANNALIST__QUEUE__LEASE_SECS=1

# Jobs for as long as there are kills.
python3 - "$jobs" > talks.jsonl <<'P'
import json, sys
for n in range(int(sys.argv[1])):
    filler = "The weather station sends a line a minute. " * 12
    said = [("user", f"Which store shall roof {n} use? {filler}"),
            ("assistant", f"We chose depot-{n} over cellar-{n} because damp-{n} ruins paper.")]
    messages = [{"role": role, "content": text} for role, text in said]
    print(json.dumps({"conversation_id": f"c{n}", "messages": messages}))
P
"$annalist" enqueue talks.jsonl --flush --json > enqueued.json

crew=()
work_on() { "$annalist" worker --drain > "worker.$1" 2>&1 & crew[$1]=$!; }
started=$SECONDS
for n in $(seq 0 $((workers - 1))); do work_on "$n"; done
killed=0
for kill in $(seq "$kills"); do
  sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
  n=$((RANDOM % workers))
  [ -n "${RESTART:-}" ] && [ $((kill % 50)) = 25 ] && $RESTART
  # One that has ended is no kill.
  kill -9 "${crew[$n]}" 2> /dev/null && killed=$((killed + 1))
  wait "${crew[$n]}" 2> /dev/null || true
  work_on "$n"
done
for n in "${!crew[@]}"; do wait "${crew[$n]}" || { cat "worker.$n"; exit 1; }; done
echo "$workers workers, $((SECONDS - started)) s"

"$annalist" status --json > status.json
"$annalist" records export > records.jsonl
curl -s "$url/stats" > stats.json
python3 - "$killed" <<'P'
import json, sys
killed = int(sys.argv[1])
enqueued, status, stats = (json.load(open(f"{n}.json")) for n in ("enqueued", "status", "stats"))
ids = [json.loads(line)["id"] for line in open("records.jsonl")]
coverage = {}
for session in status["sessions"]:
    for state, entries in session["coverage"].items():
        coverage[state] = coverage.get(state, 0) + entries
repeated = stats["identical_bodies"]
print(f"{enqueued['jobs']} jobs, {killed} kills, {repeated} calls made twice, "
      f"{len(ids)} records, coverage {coverage}")
assert sum(coverage.values()) == enqueued["entries"], "the totals balance"
assert coverage.get("pending", 0) == 0 and coverage.get("failed", 0) == 0, "every entry is covered"
assert len(ids) == len(set(ids)) > 0, "each record exists once"
assert status["spent"]["calls"] == enqueued["jobs"], "each job is on the bill once"
assert repeated <= killed, "at most one call more for each kill"
P
