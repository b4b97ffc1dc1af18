// The page in a real Chromium: every page and every button, an accessibility checker, and pictures in both widths and
// both schemes. Run by `just page`; the folder of the pictures is printed.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import puppeteer from "puppeteer-core";

const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", process.env.CHROMIUM].find((it) => it && existsSync(it));
if (!chromium) {
  console.log("page: no Chromium: install the package `chromium`, or set CHROMIUM to its path");
  process.exit(1);
}
const root = resolve(import.meta.dirname, "../..");
const annalist = process.env.ANNALIST ?? join(root, "target/debug/annalist");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core"), "utf8");
const place = mkdtempSync(join(tmpdir(), "annalist-page-"));
const failures = [];
const check = (is, what) => is || failures.push(what);

// A model that finds what is said in three forms, and refuses one conversation.
const matches = (text, form) => [...text.matchAll(form)];
const answer = ({ model, messages, tools }) => {
  const text = messages.map((it) => it.content ?? "").filter((it) => it.includes("<transcript-")).at(-1)?.split("<transcript-")[1] ?? "";
  if (text.includes("EXPLODE")) return null;
  const decisions = matches(text, /We chose (.+?) over (.+?) because (.+?)\./gs).map(([, chosen, other, rationale]) => ({ options: [chosen, other], chosen, rationale }));
  const requests = matches(text, /Please (.+?) so that (.+?)\./gs).map(([, target, intent]) => ({ intent, target, summary: `Please ${target} so that ${intent}.` }));
  const attempts = matches(text, /I ran (.+?) and it (.+?)\./gs).map(([, action, result]) => ({ action, result, succeeded: !result.includes("failed") }));
  const call = { name: tools?.[0]?.function?.name ?? "write_extracted", arguments: JSON.stringify({ decisions, requests, attempts, discussions: [] }) };
  const message = { role: "assistant", content: null, tool_calls: [{ id: "t", type: "function", function: call }] };
  return { id: "c", object: "chat.completion", model, choices: [{ index: 0, finish_reason: "tool_calls", message }], usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 } };
};
const endpoint = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const answered = answer(JSON.parse(body || "{}"));
  response.writeHead(answered ? 200 : 400, { "content-type": "application/json" });
  response.end(JSON.stringify(answered ?? { error: { message: "content policy", type: "invalid_request_error" } }));
});
await new Promise((done) => endpoint.listen(0, "127.0.0.1", done));

const env = {
  PATH: process.env.PATH, HOME: place, ANNALIST__CONSOLIDATE__MODEL: "",
  ANNALIST__MODEL__BASE_URL: `http://127.0.0.1:${endpoint.address().port}/v1`, ANNALIST__MODEL__MODEL: "stub-1",
};
// The endpoint answers in this process, which must not wait for the command.
const run = (...args) => new Promise((done, failed) => {
  const child = spawn(annalist, args, { cwd: place, env });
  let out = "", said = "";
  child.stdout.on("data", (it) => { out += it; });
  child.stderr.on("data", (it) => { said += it; });
  child.on("error", failed);
  child.on("close", (code) => (code === 0 || code === 1 ? done(out) : failed(new Error(`annalist ${args.join(" ")}: ${said}`))));
});
const json = async (...args) => JSON.parse(await run(...args, "--json"));

// Contradictions, a request with its deed, hostile text and a slice that fails, in two projects.
const talk = (name, project, daysAgo, ...said) => {
  const lines = said.map(([side, words], at) => {
    const message = side === "user" ? { role: side, content: words } : { id: `m${at}`, type: "message", role: side, model: "m", content: [{ type: "text", text: words }], stop_reason: "end_turn" };
    const digits = [...name].map((it) => it.charCodeAt(0).toString(16)).join("").padEnd(12, "0").slice(0, 12);
    const uuid = (number) => `${String(number).padStart(8, "0")}-abcd-4bcd-8bcd-${digits}`;
    return JSON.stringify({
      parentUuid: at ? uuid(at - 1) : null, isSidechain: false, userType: "external", cwd: project, version: "2.1.0",
      sessionId: `7b0c5a52-0d3e-4d3c-9a57-${digits}`, type: side, message, uuid: uuid(at),
      timestamp: new Date(Date.now() - daysAgo * 86_400_000 + at * 1000).toISOString(),
    });
  });
  writeFileSync(join(place, "talks", `${name}.jsonl`), lines.join("\n") + "\n");
};
for (const it of [".annalist", "pictures", "talks"]) mkdirSync(join(place, it));
execFileSync("git", ["init", "--quiet"], { cwd: place });
talk("queue", place, 6, ["user", "We chose Redis over Postgres because the queue needs low latency."], ["assistant", "Good, Redis it is."]);
talk("later", place, 2, ["user", "We chose Postgres over Redis because the queue must survive a restart."], ["assistant", "Fine."]);
talk("mail", place, 3, ["user", "Please add a retry to the mail sender so that no receipt is lost."], ["user", "Thanks. My password is hunter2secret."]);
talk("sent", place, 1, ["assistant", "I ran the tests of the mail sender with the retry and it worked with 3 receipts."]);
talk("hostile", place, 0, ["user", 'We chose <script>alert(1)</script><img src=x onerror=alert(2)> over "onload=x because \u202eevil\u2066 \u0007\x1b[2J it is.']);
talk("walls", "/home/dev/walls", 0, ["user", "Please plaster the west wall so that the damp stays out."]);
talk("refused", "/home/dev/walls", 0, ["user", "EXPLODE. We chose nothing over something because of it."]);
await run("replay", "talks");
await run("memory", "init");
const sessions = (await json("status", "--all")).sessions;
const session = (name) => `/session/${sessions.find((it) => it.path.endsWith(`${name}.jsonl`)).session}`;
const namespace = sessions.find((it) => it.path.endsWith("queue.jsonl")).namespace;
for (const it of new Set(sessions.map((it) => it.namespace))) await run("consolidate", "--namespace", it);
await run("memory", "sync");
// One more, which waits; and a job that is dead.
talk("shed", place, 0, ["user", "We chose tin over slate because slate is too heavy for the shed."]);
await run("replay", "talks/shed.jsonl");
talk("again", "/home/dev/walls", 0, ["user", "EXPLODE again. We chose nothing over something because of it."]);
await run("enqueue", "talks/again.jsonl", "--flush");
await run("worker", "--drain");

const server = spawn(annalist, ["serve", "--listen", "127.0.0.1:0"], { cwd: place, env });
process.on("exit", () => server.kill());
const address = await new Promise((found, failed) => {
  let said = "";
  server.on("exit", () => failed(new Error(`annalist serve ended: ${said}`)));
  server.stderr.on("data", (data) => {
    said += data;
    const at = said.match(/page at (http:\S+)\n/);
    if (at) found(at[1]);
  });
});
const origin = new URL(address).origin;
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
const tab = await browser.newPage();
const isExpected = (text) => text.includes("ERR_INTERNET_DISCONNECTED") || text.includes("404");
tab.on("console", (it) => it.type() === "error" && !isExpected(it.text()) && failures.push(`${tab.url()}: ${it.text()}`));
tab.on("pageerror", (error) => failures.push(`${tab.url()}: ${error}`));
tab.on("dialog", (it) => { failures.push(`a script ran: ${it.message()}`); it.dismiss(); });
tab.on("request", (it) => check(it.url().startsWith(origin) || it.url().startsWith("data:"), `asks elsewhere: ${it.url()}`));
await tab.setViewport({ width: 1280, height: 900 });
await tab.goto(address);
check(tab.url() === `${origin}/`, `the secret stays in the address: ${tab.url()}`);

const links = (selector) => tab.$$eval(selector, (all) => all.map((it) => it.getAttribute("href")));
const words = () => tab.$eval("main", (it) => it.textContent);
const go = async (path, status = 200) => {
  const answered = await tab.goto(origin + path);
  check(answered.status() === status, `${path}: ${answered.status()}`);
};
const says = async (text) => check((await words()).includes(text), `${tab.url()}: expected “${text}”`);
const press = async (label) => {
  const button = await tab.$(`::-p-xpath(//main//button[normalize-space()="${label}"])`);
  if (!button) return check(false, `${tab.url()}: no button “${label}”`);
  await Promise.all([tab.waitForNavigation(), button.click()]);
  return true;
};
const pictured = async (name) => {
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await tab.setViewport({ width, height: 900 });
    await tab.evaluate(axe);
    const found = await tab.evaluate(() => window.axe.run());
    for (const it of found.violations) failures.push(`${name} ${scheme} ${width}: ${it.id}: ${it.nodes[0].html}`);
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    check(wide <= 0, `${name} is ${wide} px wider than ${width}`);
    await tab.screenshot({ path: join(place, "pictures", `${name}-${scheme}-${width}.png`), fullPage: true });
  }
  await tab.setViewport({ width: 1280, height: 900 });
};
const look = async (name, path, status) => {
  check(path, `there is no page “${name}”`);
  if (!path) return;
  await go(path, status);
  await pictured(name);
};

const memories = await json("memory", "list", "--all");
const memory = (is) => `/memory/${memories.find((it) => is(it.claim))?.id}`;
const redis = memory((it) => it.chosen === "Redis");
await go(session("queue"));
const runs = (await links("details a")).filter((it) => it.startsWith("/run/"));
await go("/plans");
const waiting = (await links("main ul.plain a")).find((it) => it.startsWith("/plans/next"));
const applied = (await links("main ul.plain a")).find((it) => /^\/plans\/[0-9a-f]+$/.test(it));
const project = `/memory?namespace=${encodeURIComponent(namespace)}`;
const review = `/review?namespace=${encodeURIComponent(namespace)}`;
const pages = {
  today: "/?days=7", projects: "/memory", memory: project, section: `${project}&section=decision`, one: redis, reviews: "/review", review,
  sessions: "/session", session: session("mail"), hostile: session("hostile"), run: runs[0], search: "/search?q=queue",
  plans: "/plans", plan: waiting, applied, "forget-session": session("queue").replace("/session/", "/forget?session="),
  "forget-record": `/forget?record=${(await json("records"))[0].id}`,
};
for (const [name, path] of Object.entries(pages)) await look(name, path);
await look("error", "/memory/0000", 404);
await go("/");
await says("annalist replay");
await go(runs[0]);
await says("is that of the request that was sent");
await says("We chose Redis over Postgres");
await go(waiting);
check((await tab.$$("pre.diff .added")).length > 0, "the plan shows no file of the directory");
await go(session("mail"));
check(!(await words()).includes("hunter2"), "a password is shown");
await go(pages["forget-session"]);
for (const it of ["Records", "Memories", "Files of the directory"]) await says(it);

// Search as one types, and by the key.
await go("/plans");
await Promise.all([tab.waitForNavigation(), tab.keyboard.press("/")]);
await tab.waitForFunction(() => document.activeElement.id === "q", { timeout: 5000 }).catch(() => check(false, "the key does not focus the search"));
await tab.type("#q", "queue");
await tab.waitForFunction(() => document.querySelectorAll("#found li").length > 0, { timeout: 5000 }).catch(() => check(false, "nothing is found while typing"));
check(tab.url().includes("q=queue"), "the address does not follow the words");
await tab.setOfflineMode(true);
await tab.type("#q", "x");
await tab.waitForFunction(() => document.querySelector("#found").textContent.startsWith("No answer"), { timeout: 5000 }).catch(() => check(false, "without an answer the old hits stay"));
await tab.setOfflineMode(false);
// By keyboard: the first stop is the skip link.
await go("/memory");
await tab.keyboard.press("Tab");
check(await tab.evaluate(() => document.activeElement.className) === "skip", "the first stop is not the skip link");
// Without script.
await tab.setJavaScriptEnabled(false);
await go("/search?q=queue");
check((await tab.$$("#found li")).length > 0, "search needs the script");
await tab.setJavaScriptEnabled(true);

// Every verdict, each undone.
const states = async () => JSON.stringify((await json("memory", "list", "--all")).map(({ id, state, stage }) => [id, state, stage]));
const undone = async (path, label) => {
  await go(path);
  const before = await states();
  if (!(await press(label))) return;
  check(label === "Both hold" || (await states()) !== before, `${path}: “${label}” changed nothing`);
  await press("Undo");
  check((await states()) === before, `${path}: undo of “${label}” did not restore`);
};
for (const it of ["Both hold", "The later replaces the earlier", "The earlier replaces the later", "The earlier is wrong", "The later is wrong", "Close the request or question"]) await undone(review, it);
await undone(redis, "Wrong: retract it");
await go(redis);
await press("Wrong: retract it");
await undone(redis, "Restore: it is in use again");
await go(redis);
await press("Restore: it is in use again");
const wall = memory((it) => it.summary?.includes("west wall"));
await undone(wall, "Close: it is done");
await go(wall);
await press("Close: it is done");
await undone(wall, "Open again");
await go(wall);
await says("a person decided: closed");
// The last verdict was undone: it is redone from its own page.
await go("/plans");
const verdict = (await links("main ul.plain a")).find((it) => /^\/plans\/[0-9a-f]+$/.test(it));
await go(verdict);
await press("Redo this plan");
await go(verdict);
await press("Undo this plan");

// The waiting plan: refused, staged again, accepted, undone.
const before = await states();
await go(waiting);
await press("Refuse: set its records aside");
check((await states()) === before, "a refused plan changed memory");
await pictured("refused");
await press("Stage its records again");
await press("Accept");
check((await states()) !== before, "an accepted plan changed nothing");
await says("can be undone");
await press("Undo");
check((await states()) === before, "undo of a plan did not restore");

await go("/");
await press("Retry");
await says("The jobs will be retried.");
await go(pages["forget-session"]);
await tab.click("input[name=sure]");
await press("Erase permanently");
check((await tab.$eval("h1", (it) => it.textContent)) === "Forgotten", "nothing was forgotten");
await pictured("forgotten");
await go(session("queue"), 404);

await browser.close();
server.kill();
endpoint.close();
console.log(`pictures: ${join(place, "pictures")}`);
for (const it of [...new Set(failures)]) console.log(`failed: ${it}`);
console.log(failures.length ? `${failures.length} failures` : "the page is well");
process.exit(failures.length ? 1 : 0);
