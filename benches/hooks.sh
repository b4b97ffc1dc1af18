#!/usr/bin/env bash
# `annalist context` and every hook as whole processes, on a directory of 7 base files, 300 decisions and 300
# sessions. Needs python3, pgrep and a release build.
#   benches/hooks.sh [ANNALIST]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
annalist=$(realpath "${1:-$here/target/release/annalist}")
work=$(mktemp -d)
cd "$work"
trap 'rm -rf "$work"' EXIT
export HOME="$work/home" XDG_STATE_HOME="$work/state"
mkdir -p home

python3 - "$annalist" <<'P'
import json, os, subprocess, sys, time
annalist, runs = sys.argv[1], 40
memory = ".claude/memory/"
for folder in ("decisions", "sessions"):
    os.makedirs(memory + folder)
def write(name, text):
    with open(memory + name, "w") as out:
        out.write(text)
words = "The queue keeps its jobs in the store, and a worker leases them by the minute. "
lists = "".join(f"- point {n}: {words}\n" for n in range(40))
for name in ("active-context", "product-context", "progress", "patterns", "glossary", "notes"):
    write(name + ".md", f"# {name}\n\n## One\n{lists}\n## Two\n{lists}")
write(".memory-config.md", "---\ntoken_budget: standard\n---\n")
for n in range(1, 301):
    write(f"decisions/ADR-{n:03}-choice-{n}.md",
          f"# ADR-{n:03}: Choice {n}\n\n**Status:** Accepted\n**Date:** 2026-01-02\n\n"
          f"## Context\n{words * 8}\n\n## Decision\n{words * 4}\n\n## Rationale\n{words * 8}\n")
    write(f"sessions/2026-{n // 28 + 1:02}-{n % 28 + 1:02}-work-{n}.md",
          f"# Session: {n}\n\n## Summary\n{words * 10}\n\n## Work Completed\n{lists}")
def transcript(name, size):
    with open(name, "w") as out:
        n = 0
        while out.tell() < size:
            for side in (0, 1):
                message = {"role": "user", "content": words * 8} if side == 0 else {
                    "role": "assistant", "model": "opus", "usage": {"input_tokens": 90000},
                    "content": [{"type": "text", "text": words * 8}]}
                print(json.dumps({"type": "assistant" if side else "user", "sessionId": name,
                    "uuid": f"{name}-{n}-{side}", "cwd": os.getcwd(), "message": message,
                    "timestamp": "2026-05-04T06:00:00.000Z"}), file=out)
            n += 1
transcript("short.jsonl", 60_000)
transcript("long.jsonl", 100_000_000)
def settle():
    """Waits for the process that the hook before left behind: a client's turns are seconds apart."""
    while subprocess.run(["pgrep", "-f", f"^{annalist} hand-over"], capture_output=True).returncode == 0:
        time.sleep(0.05)
def measure(name, args, told=None, before=None):
    times = []
    for run in range(runs):
        settle()
        if before:
            before(run)
        begun = time.perf_counter()
        done = subprocess.run(args, input=told and json.dumps(told).encode(), capture_output=True)
        times.append((time.perf_counter() - begun) * 1e3)
        assert done.returncode == 0, done.stderr
    times.sort()
    print(f"{name}: {times[0]:.1f} at best, {times[runs // 2]:.1f} in the median, {times[-1]:.1f} ms at worst")
def hook(event, path, **more):
    told = {"session_id": "s-1", "transcript_path": os.path.abspath(path), **more}
    return [annalist, "hook", event], told
def grow(run):
    with open("short.jsonl", "a") as out:
        print(json.dumps({"type": "user", "sessionId": "short.jsonl", "uuid": f"g-{run}", "cwd": os.getcwd(),
            "message": {"role": "user", "content": words}, "timestamp": "2026-05-04T06:00:00.000Z"}), file=out)
measure("true", ["true"])
measure("annalist --version", [annalist, "--version"])
for budget in ("economy", "standard", "detailed"):
    measure(f"context --budget {budget}", [annalist, "context", "--budget", budget])
measure("context --query", [annalist, "context", "--query", "queue leases"])
measure("hook session-start", *hook("session-start", "short.jsonl", source="startup"))
measure("hook user-prompt-submit, 100 MB", *hook("user-prompt-submit", "long.jsonl", prompt="go on"))
subprocess.run([annalist, "enqueue", "short.jsonl", "long.jsonl"], capture_output=True)
measure("hook stop, 60 kB, nothing new", *hook("stop", "short.jsonl"))
measure("hook stop, 60 kB, grew by a line", *hook("stop", "short.jsonl"), before=grow)
measure("hook pre-compact, 60 kB", *hook("pre-compact", "short.jsonl", trigger="manual"))
measure("hook session-end, 60 kB", *hook("session-end", "short.jsonl"), before=grow)
runs = 3
measure("hook stop, 100 MB", *hook("stop", "long.jsonl"))
P
