#!/usr/bin/env python3
"""Works a store for a long time and then looks for a broken promise.

    tests/soak.py MINUTES [STORE_URL]

Conversations come and grow, three workers extract them from an endpoint with faults and are killed, memory is
synced and killed, a person edits the directory meanwhile, plans are undone, conversations forgotten. Then everything
ends in peace and the five promises are checked. ANNALIST and ANNALIST_MOCKLLM name the two programs, SEED the
order of events. A store at STORE_URL has to be empty; `just soak` makes one.
"""
import json, os, pathlib, random, re, signal, sqlite3, subprocess, sys, tempfile, time, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
MINUTES = float(sys.argv[1])
URL = sys.argv[2] if len(sys.argv) > 2 else None
BINARY = os.environ.get("ANNALIST", str(ROOT / "target/release/annalist"))
MOCK = os.environ.get("ANNALIST_MOCKLLM", str(ROOT / "target/stand-in/release/mockllm"))
SEED = int(os.environ.get("SEED", time.time()))
FAULTS = "http_429=0.03,http_500=0.03,drop_body=0.02,conn_close=0.02,trunc_args=0.02,no_tool=0.02,bad_json=0.02"
WORKERS = 3
dice = random.Random(SEED)
place = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
project, memory = place / "project", place / "project/.claude/memory"
done = dict.fromkeys("talks grown worker_kills sync_kills syncs edits undone forgotten".split(), 0)
printed = []


def start(*args):
    out = open(place / "printed.txt", "ab")
    return subprocess.Popen([BINARY, *args], cwd=project, env=env, stdout=out, stderr=out)


def run(*args, ok=(0,)):
    it = subprocess.run([BINARY, *args], cwd=project, env=env, capture_output=True, text=True, timeout=900)
    printed.append(it.stdout + it.stderr)
    assert it.returncode in ok, f"{args}: exit {it.returncode}\n{it.stdout[-2000:]}{it.stderr[-2000:]}"
    return it.stdout


class Talk:
    """A conversation with a decision, a request and what must never leave it."""

    def __init__(self, number):
        self.id, self.turns, self.edited = f"{number:05}", 0, False
        self.path = project / "talks" / f"{self.id}.json"
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        self.canaries = ["ghp_" + "".join(dice.choices(letters, k=36)), f"opal-{self.id}-harbour",
                         f"ida.{self.id}@corp-mail.org"]
        self.messages = []
        self.grow()

    def grow(self):
        n, turn = self.id, self.turns
        token, private, mail = self.canaries
        self.messages += [
            {"role": "user", "content": f"Which store shall roof-{n} use in part {turn}? export GH_TOKEN={token}\n"
                                        f"<private>{private}</private> Write to {mail} when it is done."},
            {"role": "assistant", "content": f"We chose depot-{n}-{turn} over cellar-{n}-{turn}, because "
                                             f"damp-{n}-{turn} ruins paper. I ran check-{n}-{turn} and it passed."}]
        self.turns += 1
        text = json.dumps({"conversation_id": f"talk-{n}", "messages": self.messages})
        self.path.write_text(text)


def edit(number):
    """A person's edit: a line of their own, or words behind one of ours."""
    mark = f"(by hand {number:05})"
    files = [f for f in memory.rglob("*.md") if "depot-" in f.read_text()]
    lines = [(f, line) for f in files for line in f.read_text().splitlines()
             if line.startswith("- ") and "depot-" in line and "by hand" not in line]
    if lines and dice.random() < 0.5:
        file, line = dice.choice(lines)
        text = file.read_text()
        for found in re.findall(r"depot-(\d{5})", line):
            talks[int(found)].edited = True
        changed = text.replace(line, f"{line} {mark}", 1)
    else:
        file = memory / "product-context.md"
        text = file.read_text()
        changed = text.rstrip("\n") + f"\n- The kettle stays on {mark}\n"
    # As an editor saves: only over what it has read.
    if file.read_text() == text:
        temporary = file.with_name(".edit")
        temporary.write_text(changed)
        temporary.rename(file)
        return mark
    return None


def stats():
    return json.load(urllib.request.urlopen(f"{endpoint}/stats"))


def dump():
    """All that the store holds, as text."""
    if URL is None:
        with sqlite3.connect(project / ".annalist/annalist.db") as store:
            tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
            rows = (row for (name,) in tables.fetchall() for row in store.execute(f'SELECT * FROM "{name}"'))
            texts = (it.decode("utf-8", "replace") if isinstance(it, bytes) else str(it) for row in rows for it in row)
            return "\n".join(texts)
    base, _, options = URL.partition("?")
    schema = re.search(r"search_path(?:%3D|=)(\w+)", options)[1]
    return subprocess.run(["pg_dump", "-n", schema, base], capture_output=True, text=True, check=True).stdout


(project / "talks").mkdir(parents=True)
subprocess.run(["git", "init", "-q", str(project)], check=True)
mock = subprocess.Popen([MOCK, "--port", "0", "--port-file", str(place / "port"), "--latency", "lognormal:80,0.6",
                         "--fault", FAULTS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not (place / "port").exists() or not (place / "port").read_text():
    time.sleep(0.05)
endpoint = f"http://127.0.0.1:{(place / 'port').read_text().strip()}"
env = {"PATH": os.environ["PATH"], "HOME": str(place / "home"), "LANG": "C.UTF-8",
       "ANNALIST__MODEL__BASE_URL": f"{endpoint}/v1", "ANNALIST__QUEUE__LEASE_SECS": "20",
       "ANNALIST__QUEUE__ATTEMPTS_MAX": "50", "ANNALIST__STORE__URL": URL or "sqlite:.annalist/annalist.db"}
(place / "home").mkdir()
print(f"seed {SEED}, {MINUTES:g} min, {URL or 'SQLite'}", flush=True)

run("memory", "init")
talks, marks, forgotten = [], [], set()
crew = [start("worker") for _ in range(WORKERS)]
ends, turn = time.monotonic() + MINUTES * 60, 0
while time.monotonic() < ends:
    turn += 1
    touched = [Talk(len(talks) + n) for n in range(dice.randint(1, 2))]
    talks += touched
    done["talks"] += len(touched)
    growing = dice.choice(talks)
    if growing.id not in forgotten and growing not in touched:
        growing.grow()
        touched.append(growing)
        done["grown"] += 1
    run("enqueue", *(f"talks/{talk.path.name}" for talk in touched), "--flush", "--namespace", "soak")
    if dice.random() < 0.4:
        at = dice.randrange(WORKERS)
        if crew[at].poll() is None:
            crew[at].send_signal(signal.SIGKILL)
            done["worker_kills"] += 1
        crew[at].wait()
        crew[at] = start("worker")
    if turn % 3 == 0:
        sync = start("memory", "sync", "--namespace", "soak")
        time.sleep(dice.random())
        mark = edit(len(marks))
        if mark:
            marks.append(mark)
            done["edits"] += 1
        if dice.random() < 0.3 and sync.poll() is None:
            sync.send_signal(signal.SIGKILL)
            done["sync_kills"] += 1
        sync.wait()
        done["syncs"] += 1
    if turn % 20 == 0:
        plans = json.loads(run("consolidate", "log", "--namespace", "soak", "--json"))
        plans = [plan for plan in plans if plan["undone_at"] is None]
        if plans:
            run("consolidate", "--undo", plans[-1]["plan"], ok=(0, 1))
            done["undone"] += 1
    if turn % 25 == 0:
        quiet = [talk for talk in talks[:-5] if not talk.edited and talk.id not in forgotten]
        if quiet:
            talk = dice.choice(quiet)
            run("forget", "--session", f"talk-{talk.id}", "--yes", ok=(0, 1))
            forgotten.add(talk.id)
            done["forgotten"] += 1
    time.sleep(dice.random() * 2)

# Peace: what is under way ends, what died is tried again.
for worker in crew:
    worker.send_signal(signal.SIGTERM)
    worker.wait()
for _ in range(5):
    run("worker", "--drain", ok=(0, 1))
    run("jobs", "retry", "--all-dead", ok=(0, 1))
run("memory", "sync", "--namespace", "soak", ok=(0, 1))
before = {f: f.read_bytes() for f in memory.rglob("*.md")}
run("memory", "sync", "--namespace", "soak", "--no-model")
settled = before == {f: f.read_bytes() for f in memory.rglob("*.md")}

broken = []


def hold(promise, is_so, why):
    if not is_so:
        broken.append(f"{promise}: {why}")


status = json.loads(run("status", "--all", "--json", ok=(0, 1)))
coverage = {}
for session in status["sessions"]:
    for state, entries in session["coverage"].items():
        coverage[state] = coverage.get(state, 0) + entries
    hold("nothing is lost", session["balanced"], f"session {session['native_id']}: {session['coverage']}")
known = {session["native_id"].partition("#")[0] for session in status["sessions"]}
for talk in talks:
    hold("nothing is lost", talk.id in forgotten or f"talk-{talk.id}" in known, f"talk {talk.id} is not there")
hold("nothing is lost", not coverage.get("pending") and not coverage.get("failed"), coverage)

records = [json.loads(line) for line in run("records", "export").splitlines()]
ids = [record["id"] for record in records]
hold("nothing is invented", len(ids) == len(set(ids)) > 0, "a record exists twice, or none")
flat = lambda text: " ".join(text.split())
said = {}
for record in records:
    path = project / record["path"]
    said.setdefault(path, flat("\n".join(m["content"] for m in json.loads(path.read_text())["messages"])))
    for evidence in record["evidence"]:
        words = flat(evidence["words"])
        hold("nothing is invented", "<" in words or words in said[path], f"{record['id']}: {words}")
    hold("nothing is invented", record["state"] != "staged" or record["evidence"], f"{record['id']} without words")

seen = stats()
kills = done["worker_kills"] + done["sync_kills"]
faults = sum(seen["faults"].values())
hold("nothing is paid twice", seen["identical_bodies"] <= kills + faults,
     f"{seen['identical_bodies']} repeats, {kills} kills, {faults} faults")

kept = "\n".join(f.read_text() for f in memory.rglob("*.md"))
text = dump()
for mark in marks:
    hold("nothing is overwritten", mark in kept or mark in text, f"{mark} is gone")
hold("nothing is overwritten", settled, "a sync that has nothing to do changes the directory")
for talk in talks:
    if talk.id in forgotten:
        hold("nothing private leaves", f"depot-{talk.id}" not in kept + text, f"{talk.id} was to be forgotten")

exits = [kept, text, "\n".join(printed), (place / "printed.txt").read_text(errors="replace")]
exits += [f.read_bytes().decode("utf-8", "replace") for f in (project / ".annalist").rglob("*") if f.is_file()]
for canary in (canary for talk in talks for canary in talk.canaries):
    hold("nothing private leaves", not any(canary in it for it in exits), canary)

mock.kill()
print(json.dumps(done | {"calls": seen["requests"]["chat"], "repeats": seen["identical_bodies"], "faults": faults,
                         "records": len(records), "coverage": coverage}))
print("\n".join(broken[:40]) or "all five promises hold")
print(f"left for a look: {place}" if broken else f"{len(talks)} conversations checked")
if not broken:
    subprocess.run(["rm", "-rf", str(place)], check=True)
sys.exit(1 if broken else 0)
