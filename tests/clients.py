#!/usr/bin/env python3
"""Runs real clients against a scripted model, with no network but loopback, and checks what annalist makes of it.

    tests/clients.py [--install] [ANNALIST] [CLIENT...]

For each client, in a project of its own with an empty home: its transcript is read, its hooks hand it over, the store has
the entries that the script makes, by speaker and kind, a worker extracts it, and its next session starts with what was
decided. Not checked: the texts and times of entries, those of the client itself, and the speakers of aider and
mini-swe-agent, which do not follow the script. Then each starts a session in the project in which
Claude Code decided something. Hooks are timed from the start of `annalist hook` to its end. Clients are those in the folder ANNALIST_CLIENTS; --install puts them there (npm, pip).
The scripted model is ../shared/mockagent/mock.py, or ANNALIST_MOCKAGENT. Prints a table for docs/clients.md.
"""
import collections, glob, http.server, json, os, re, runpy, shutil, sqlite3, statistics, subprocess, sys, tempfile, threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOCK = os.environ.get("ANNALIST_MOCKAGENT", os.path.join(ROOT, "../shared/mockagent/mock.py"))
FOLDER = os.environ.get("ANNALIST_CLIENTS", "")
NPM = ["@anthropic-ai/claude-code", "@openai/codex", "@google/gemini-cli", "@qwen-code/qwen-code", "opencode-ai",
       "@earendil-works/pi-coding-agent", "cline", "@github/copilot"]
PYPI = ["aider-chat", "mini-swe-agent"]
MODEL, EXTRACTOR = 18080, 18081
TASK, QUESTION = "Write a test for the lock", "What did we decide?"
HELP, HELPERS = "Let a helper count the shell files", ["claude", "opencode"]
SEARCH, COMMANDS = "Search this project's memory for: lock", ["claude", "gemini", "qwen", "opencode"]
# What the scripted model decides, as it is extracted, and as a session starts with it.
WORDS = "a plain file `roof.lock`"
ANSWER = "the plain file `roof.lock`"
FAILURE = "It fails because roof.lock is missing"
BLOCK = "ADR-001: a plain file `roof.lock`"
URL = f"http://127.0.0.1:{MODEL}"
# Of what the model says to it: mini-swe-agent keeps no answer without a call of a tool, and the model knows no tool of Cline.
SAID = {"mini": (TASK, FAILURE), "cline": (QUESTION, ANSWER)}

# Stands in front of annalist while a client runs, and logs how long hooks take, in microseconds.
TIMER = """#!/bin/bash
[ "$1" = hook ] || exec "%s" "$@"
begun=$EPOCHREALTIME
"%s" "$@"; code=$?
ended=$EPOCHREALTIME
echo "$2 $((${ended/./} - ${begun/./}))" >> "$HOME/hooks.log"
exit $code
"""

# They do not follow the script: it has other answers for aider, and mini-swe-agent asks until its limit of steps.
UNSCRIPTED = ["aider", "mini"]

# Client: flag of `annalist init`, command with the prompt last, environment, files in the home, and transcripts in the
# home, or in the project if they begin with `./`.
CODEX = f"""model_provider = "mock"
model = "gpt-5"
[model_providers.mock]
name = "mock"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
[projects."%s"]
trust_level = "trusted"
"""
OPENCODE = {"model": "mock/mock-model", "provider": {"mock": {
    "npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": f"{URL}/v1", "apiKey": "sk-test"},
    "models": {"mock-model": {"name": "mock"}}}}}
PI = {"providers": {"mock": {"baseUrl": f"{URL}/v1", "api": "openai-completions", "apiKey": "sk-test",
                             "models": [{"id": "mock-model"}]}}}
CLINE = {"version": 1, "lastUsedProvider": "openai-compatible", "providers": {"openai-compatible": {
    "settings": {"provider": "openai-compatible", "apiKey": "sk-test", "model": "gpt-4o", "baseUrl": f"{URL}/v1"},
    "updatedAt": "2026-11-01T00:00:00.000Z", "tokenSource": "manual"}}}
CLIENTS = {
    "claude": ("--claude-code", ["claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "Write", "-p"],
               {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": "sk-test", "DISABLE_TELEMETRY": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
               {}, ".claude/projects/**/*.jsonl"),
    "codex": ("--codex", ["codex", "exec", "--dangerously-bypass-hook-trust",
                          "--dangerously-bypass-approvals-and-sandbox"],
              {"OPENAI_API_KEY": "sk-test"}, {".codex/config.toml": CODEX}, ".codex/sessions/**/*.jsonl"),
    "gemini": ("--gemini", ["gemini", "--yolo", "-p"],
               {"GOOGLE_GEMINI_BASE_URL": URL, "GEMINI_API_KEY": "sk-test", "NO_BROWSER": "true",
                "GEMINI_SANDBOX": "false", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
               {".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}}},
               ".gemini/tmp/*/chats/**/*.json*"),
    "qwen": ("--qwen", ["qwen", "--auth-type", "openai", "--yolo", "-p"],
             {"OPENAI_BASE_URL": f"{URL}/v1", "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "mock-model"},
             {}, ".qwen/projects/**/chats/*.jsonl"),
    "opencode": ("--opencode", ["opencode", "run"],
                 {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                  "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
                  "npm_config_registry": "http://127.0.0.1:9/", "npm_config_fetch_retries": "0"},
                 {".config/opencode/opencode.json": OPENCODE}, ".local/share/opencode/opencode.db"),
    "pi": (None, ["pi", "--provider", "mock", "--model", "mock-model", "-p"],
           {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, {".pi/agent/models.json": PI}, ".pi/agent/sessions/**/*.jsonl"),
    "cline": (None, ["cline", "-P", "openai-compatible", "-m", "gpt-4o"], {},
              {".cline/data/settings/providers.json": CLINE}, ".cline/data/sessions/*/*.messages.json"),
    "copilot": (None, ["copilot", "--allow-all-tools", "-p"],
                {"COPILOT_PROVIDER_BASE_URL": f"{URL}/v1", "COPILOT_PROVIDER_API_KEY": "sk-test", "COPILOT_MODEL": "gpt-4o",
                 "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"},
                {}, ".copilot/session-state/*/events.jsonl"),
    "aider": (None, ["aider", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-browser",
                     "--no-detect-urls", "--model", "openai/gpt-4o", "--yes-always", "--no-gitignore", "--map-tokens",
                     "0", "--message"],
              {"OPENAI_API_BASE": f"{URL}/v1", "OPENAI_API_KEY": "sk-test"}, {}, "./.aider.chat.history.md"),
    "mini": (None, ["mini", "-y", "--exit-immediately", "-c", "mini.yaml", "-c", "agent.step_limit=6", "-m",
                    "openai/gpt-4o", "-o", "run.traj.json", "-t"],
             {"OPENAI_API_BASE": f"{URL}/v1", "OPENAI_API_KEY": "sk-test", "MSWEA_CONFIGURED": "true",
              "MSWEA_COST_TRACKING": "ignore_errors", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}, {}, "./run.traj.json"),
}


def install():
    os.makedirs(FOLDER, exist_ok=True)
    # Without `@latest`, npm takes the newest version for this Node.
    newest = [name + "@latest" for name in NPM]
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", FOLDER, *newest], check=True)
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    numbers = lambda text: [int(number) for number in re.findall(r"\d+", text)]
    for name in NPM:
        with open(f"{FOLDER}/node_modules/{name}/package.json") as package:
            needs = json.load(package).get("engines", {}).get("node", "")
        least = re.search(r">=\s*v?([\d.]+)", needs)
        if least and numbers(node) < numbers(least.group(1)):
            print(f"clients: {name} needs Node {needs}, this is {node}")
    subprocess.run([sys.executable, "-m", "venv", FOLDER + "/py"], check=True)
    subprocess.run([FOLDER + "/py/bin/pip", "install", "-q", *PYPI], check=True)


class Extractor(http.server.BaseHTTPRequestHandler):
    """Answers the extraction of a slice with the decision, else the failure, if its words are there."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        found = {"decisions": [], "discussions": [], "attempts": [], "requests": []}
        said = next((words for words in (WORDS, ANSWER) if words in body), None)
        if said:
            found["decisions"].append({"options": [said, "a SQLite row"], "chosen": said,
                                       "rationale": "needs no migration"})
        elif FAILURE in body:
            found["attempts"].append({"action": "sh test_lock.sh", "result": FAILURE, "succeeded": False})
        call = {"id": "call_1", "type": "function",
                "function": {"name": "write_extracted", "arguments": json.dumps(found)}}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [
            {"index": 0, "finish_reason": "tool_calls",
             "message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Place:
    """A project, and a home for each client."""

    def __init__(self, work, name, memory=True):
        self.work, self.project = work, os.path.join(work, name, "roofs")
        os.makedirs(self.project)
        subprocess.run(["git", "init", "-q", self.project], check=True)
        with open(self.project + "/annalist.toml", "w") as out:
            out.write(f'[model]\nbase_url = "http://127.0.0.1:{EXTRACTOR}/v1"\nmodel = "scripted"\n'
                      '[queue]\nidle_secs = 1\n[consolidate]\nmodel = ""\n')
        if memory:
            self.annalist("claude", "memory", "init")

    def env(self, client):
        home = os.path.join(self.work, os.path.basename(os.path.dirname(self.project)), "home-" + client)
        for path, content in CLIENTS[client][3].items():
            path = os.path.join(home, path)
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as out:
                    out.write(content % self.project if isinstance(content, str) else json.dumps(content))
        os.makedirs(home, exist_ok=True)
        path = ":".join([os.path.dirname(ANNALIST), FOLDER + "/node_modules/.bin", FOLDER + "/py/bin"])
        return {"PATH": path + ":" + os.environ["PATH"], "HOME": home, "TERM": "xterm", "LANG": "C.UTF-8",
                "IS_SANDBOX": "1", **CLIENTS[client][2]}

    def annalist(self, client, *args):
        done = subprocess.run([ANNALIST, *args], cwd=self.project, env=self.env(client), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        return done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def said(self, client, prompt):
        """Runs a session, and returns what the model was sent during it."""
        before = os.path.getsize(REQUESTS)
        words = ["--command", *prompt[1:].split()] if client == "opencode" and prompt[0] == "/" else [prompt]
        env = self.env(client)
        env["PATH"] = f"{WORK}/timed:{env['PATH']}"
        done = subprocess.run([*CLIENTS[client][1], *words], cwd=self.project, env=env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=240)
        if done.returncode:
            print(f"{client}: exit {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}", file=sys.stderr)
        with open(REQUESTS) as log:
            log.seek(before)
            return log.read()

    def until(self, what, is_so):
        for _ in range(150):
            if is_so():
                return True
            time.sleep(0.1)
        print(f"{self.project}: {what}: not in 15 seconds", file=sys.stderr)
        return False

    def knows_helper(self, client):
        """Runs a session with a sub-agent; true if both are in the store."""
        count = lambda: sqlite3.connect(self.project + "/.annalist/annalist.db").execute(
            "SELECT count(*) FROM sessions").fetchone()[0]
        before = count()
        self.said(client, HELP)
        return self.until(f"{client}'s helper is queued", lambda: count() >= before + 2)

    def entries(self):
        """Numbers of the store's entries by speaker and kind."""
        by = "SELECT speaker, kind, count(*) FROM entries GROUP BY 1, 2"
        try:
            store = sqlite3.connect(f"file:{self.project}/.annalist/annalist.db?mode=ro", uri=True)
            return {(speaker, kind): count for speaker, kind, count in store.execute(by)}
        except sqlite3.OperationalError:
            return {}  # It was not enqueued yet.

    def jobs(self, client):
        return len(json.loads(self.annalist(client, "jobs", "list", "--json") or "[]"))


def version(client):
    env = {"PATH": FOLDER + "/node_modules/.bin:" + FOLDER + "/py/bin:" + os.environ["PATH"], "HOME": WORK}
    done = subprocess.run([CLIENTS[client][1][0], "--version"], capture_output=True, text=True, env=env)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    return found.group(0) if found else "?"


def scripted(task):
    """Numbers of entries by speaker and kind in a session with this prompt: each call has a result."""
    os.environ["MOCK_LOG"] = os.devnull
    steps = runpy.run_path(MOCK)["script"](task)
    calls = sum(len(actions) for _, actions in steps)
    return +collections.Counter({("person", "prompt"): 1, ("assistant", "text"): len(steps),
                                 ("assistant", "tool_call"): calls, ("tool", "tool_result"): calls})


def has_entries(place, client, task, count):
    """True if the store has `count` entries, and those of the script; entries of the client itself come on top."""
    expected = None if client in UNSCRIPTED else scripted(task)

    def is_whole():
        found = place.entries()
        said = {key: n for key, n in found.items() if key[0] != "client"}
        return sum(found.values()) == count > 0 and expected in (None, said)

    is_so = place.until(f"{client}: {count} entries", is_whole)
    if not is_so:
        print(f"{client}: expected {expected}, found {place.entries()}", file=sys.stderr)
    return is_so


def hook_times(client):
    """Median and maximum of all hooks that the client ran."""
    logs = glob.glob(f"{WORK}/**/home-{client}/hooks.log", recursive=True)
    times = [int(line.split()[1]) / 1000 for path in logs for line in open(path)]
    return f"{statistics.median(times):.0f}, {max(times):.0f} ms of {len(times)}" if times else mark(False)


def mark(is_so):
    return "yes" if is_so else "NO"


def check(place, client, other):
    flag, _, _, _, pattern = CLIENTS[client]
    if flag:
        place.annalist(client, "init", flag, "--yes")
    task, words = SAID.get(client, (TASK, WORDS))
    place.said(client, task)
    home = place.env(client)["HOME"]
    folder = place.project if pattern.startswith("./") else home
    paths = glob.glob(os.path.join(folder, pattern), recursive=True)
    read = json.loads(place.annalist(client, "replay", "--dry-run", "--json", *paths))
    findings = sum(read.get("findings", {}).values())
    row = [client, version(client), mark(False)]
    if flag:
        queued = place.until(f"{client} is queued", lambda: place.jobs(client) > 0)
        row.append(mark(queued))
    else:
        place.annalist(client, "enqueue", "--flush", *paths)
        row.append("no hooks")
    if not findings and has_entries(place, client, task, read["entries"]):
        row[2] = f"{read['entries']} entries" + (", speakers not compared" if client in UNSCRIPTED else "")
    place.annalist(client, "worker", "--drain")
    row.append(mark(words in place.annalist(client, "records", "list", "--json")))
    place.annalist(client, "memory", "sync")
    if flag is None:
        return row + ["no hooks"] * 2 + [""] * 3
    for there in [place, other]:
        if there is not place:
            there.annalist(client, "init", flag, "--yes")
        row.append(mark(BLOCK in there.said(client, QUESTION)))
    row.append(mark(place.knows_helper(client)) if client in HELPERS else "not run")
    # Without memory: `gemini -p` puts the context before the prompt, and the command is none then.
    bare = Place(os.path.dirname(place.project), "bare", memory=False)
    bare.annalist(client, "init", flag, "--yes")
    row.append(mark(SEARCH in bare.said(client, "/memory-search lock")) if client in COMMANDS else "none")
    return row + [hook_times(client)]


def main():
    global ANNALIST, WORK, REQUESTS
    args = sys.argv[1:]
    if "--install" in args:
        args.remove("--install")
        install()
    ANNALIST = os.path.abspath(args.pop(0) if args and os.path.exists(args[0]) else ROOT + "/target/debug/annalist")
    here = lambda client: shutil.which(CLIENTS[client][1][0], path=f"{FOLDER}/node_modules/.bin:{FOLDER}/py/bin")
    wanted = [client for client in CLIENTS if FOLDER and here(client) and (client in args or not args)]
    if not os.path.exists(MOCK):
        return print(f"clients: not tried, there is no scripted model at {MOCK}")
    if not wanted:
        return print("clients: not tried, none are in ANNALIST_CLIENTS; `just clients` installs them")
    if "ANNALIST_CLIENTS_ALONE" not in os.environ:
        # In process ids of their own: daemons that clients leave behind end with this process.
        alone = ["unshare", "-rnp", "--fork", "--kill-child"]
        if subprocess.run([*alone, "true"], capture_output=True).returncode:
            return print("clients: not tried, namespaces of networks and processes are not allowed here")
        os.environ["ANNALIST_CLIENTS_ALONE"] = "1"
        os.execvp("unshare", [*alone, sys.executable, __file__, ANNALIST, *args])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    WORK = tempfile.mkdtemp()
    REQUESTS = WORK + "/requests.jsonl"
    open(REQUESTS, "w").close()
    os.mkdir(WORK + "/timed")
    with open(WORK + "/timed/annalist", "w") as out:
        out.write(TIMER % (ANNALIST, ANNALIST))
    os.chmod(WORK + "/timed/annalist", 0o755)
    mock = subprocess.Popen([sys.executable, MOCK, str(MODEL)], env={**os.environ, "MOCK_LOG": REQUESTS})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", EXTRACTOR), Extractor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    time.sleep(1)
    failed = False
    try:
        first = Place(WORK, "first")
        if "claude" in wanted:
            check(first, "claude", first)
        print("| client | version | transcript | hooks fill the queue | a worker extracts it | the next session starts "
              "with it | and one after Claude Code's | sub-agents | `/memory-search` | hooks: median, maximum |\n"
              "|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for client in wanted:
            row = check(Place(WORK, client), client, first)
            failed |= "NO" in row
            print("| " + " | ".join(row) + " |", flush=True)
    finally:
        mock.kill()
        if not failed:
            shutil.rmtree(WORK, ignore_errors=True)
    if failed:
        sys.exit(f"clients: see {WORK}")


main()
