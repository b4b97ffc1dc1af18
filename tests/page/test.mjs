// The page in a real Chromium: every page and every verdict, an accessibility checker, and pictures in both widths and
// both schemes. Run by `just page`; the folder of the pictures is printed.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
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
const env = { PATH: process.env.PATH, HOME: place, ANNALIST__CONSOLIDATE__MODEL: "" };
const run = (...args) => execFileSync(annalist, args, { cwd: place, env, stdio: ["ignore", "pipe", "ignore"] }).toString();
execFileSync("mkdir", ["-p", join(place, ".annalist"), join(place, "pictures")]);
run("replay", join(root, "examples/sessions"), "--cassette", join(root, "examples/cassette"));
const namespace = JSON.parse(run("status", "--json")).sessions[0].namespace;
run("consolidate", "--namespace", namespace);

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
const failures = [];
const check = (is, what) => is || failures.push(what);
tab.on("console", (it) => it.type() === "error" && !it.text().includes("ERR_INTERNET_DISCONNECTED") && failures.push(`${tab.url()}: ${it.text()}`));
tab.on("pageerror", (error) => failures.push(`${tab.url()}: ${error}`));
tab.on("request", (it) => check(it.url().startsWith(origin) || it.url().startsWith("data:"), `asks elsewhere: ${it.url()}`));
await tab.setViewport({ width: 1280, height: 900 });
await tab.goto(address);
check(tab.url() === `${origin}/`, `the secret stays in the address: ${tab.url()}`);

const links = (selector) => tab.$$eval(selector, (all) => all.map((it) => it.getAttribute("href")));
const go = async (path) => {
  const answered = await tab.goto(origin + path);
  check(answered.ok(), `${path}: ${answered.status()}`);
};
const press = async (label) => {
  const button = await tab.$(`::-p-xpath(//main//button[normalize-space()="${label}"])`);
  if (!button) return check(false, `${tab.url()}: no button “${label}”`);
  await Promise.all([tab.waitForNavigation(), button.click()]);
};

const look = async (name, path) => {
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await tab.setViewport({ width, height: 900 });
    await go(path);
    await tab.evaluate(axe);
    const found = await tab.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const it of found.violations) failures.push(`${path} ${scheme} ${width}: ${it.id}: ${it.nodes[0].html}`);
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    check(wide <= 0, `${path} is ${wide} px wider than ${width}`);
    await tab.screenshot({ path: join(place, "pictures", `${name}-${scheme}-${width}.png`), fullPage: true });
  }
  await tab.setViewport({ width: 1280, height: 900 });
};

await go("/memory");
const projects = (await links("main ul.plain a")).filter((it) => it.startsWith("/memory?"));
const project = `/memory?namespace=${encodeURIComponent(namespace)}`;
for (const it of projects.slice(0, 20)) await go(it);
await go(project);
const memory = (await links(".words a"))[0];
await go("/session");
const session = (await links(".words a"))[0];
await go(session);
const runs = (await links("details a")).filter((it) => it.startsWith("/run/"));
await go("/plans");
const waiting = (await links("main ul.plain a")).find((it) => it.startsWith("/plans/next"));
const pages = { today: "/?days=7", memory: project, one: memory, review: "/review", sessions: "/session", session, run: runs[0], search: "/search?q=tests", plans: "/plans", plan: waiting, forget: `/forget?session=${session.split("/")[2]}` };
for (const [name, path] of Object.entries(pages)) if (path) await look(name, path);

// Search as one types, and by the key.
await go("/plans");
await Promise.all([tab.waitForNavigation(), tab.keyboard.press("/")]);
check(await tab.evaluate(() => document.activeElement.id) === "q", "the key does not focus the search");
await tab.type("#q", "tests");
await tab.waitForFunction(() => document.querySelectorAll("#found li").length > 0, { timeout: 5000 }).catch(() => check(false, "nothing is found while typing"));
check(tab.url().includes("q=tests"), "the address does not follow the words");
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
await go("/search?q=tests");
check((await tab.$$("#found li")).length > 0, "search needs the script");
await tab.setJavaScriptEnabled(true);

// Every verdict, each undone.
const states = () => run("memory", "list", "--all", "--json");
const undone = async (what) => {
  const before = states();
  if (!(await what())) return;
  check(states() !== before, `${tab.url()}: nothing changed`);
  await press("Undo");
  const facts = (text) => JSON.stringify(JSON.parse(text).map(({ id, state, stage }) => [id, state, stage]));
  check(facts(states()) === facts(before), "undo did not restore");
};
for (const path of (await (await go("/review"), links("main ul.plain a"))).concat("/review")) {
  await go(path);
  for (const label of ["Both hold", "The later replaces the earlier", "The earlier replaces the later", "The earlier is wrong", "The later is wrong", "Close the request or question"]) {
    if (await tab.$(`::-p-xpath(//main//button[normalize-space()="${label}"])`)) {
      await undone(async () => { await press(label); return true; });
    }
  }
}
await go(memory);
await undone(async () => { await press("Wrong: retract it"); return true; });
if (waiting) {
  await go(waiting);
  await press("Accept");
  check((await tab.$eval("main", (it) => it.textContent)).includes("can be undone"), "no way back from a plan");
  await press("Undo");
}
await go(`/forget?session=${session.split("/")[2]}`);
await tab.click("input[name=sure]");
await press("Erase permanently");
check((await tab.$eval("h1", (it) => it.textContent)) === "Forgotten", "nothing was forgotten");

await browser.close();
server.kill();
console.log(`pictures: ${join(place, "pictures")}`);
for (const it of [...new Set(failures)]) console.log(`failed: ${it}`);
console.log(failures.length ? `${failures.length} failures` : "the page is well");
process.exit(failures.length ? 1 : 0);
