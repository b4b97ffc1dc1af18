//! The local page of `annalist serve`, as a browser and as an attacker use it.

use super::hand_over::until_failed;
use super::hook_cli::run;
use super::input::claude;
use super::judging::{BY_RULE, CHOICES, judge, opposed, place as said_by, says, talk};
use super::place::{Place, Running};
use super::searching::about_flaky;
use super::stub::{Answer, Stub};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two choices that contradict one another, left open by rule.
fn left_open() -> Place {
    let stub = judge(|_| {
        Answer::Call(serde_json::json!({"dispositions": [says("x", "new", None, None)]}))
    });
    let place = opposed(&stub);
    place.json(&BY_RULE);
    place
}

/// A server of the page, and what opens it.
struct Served {
    _running: Running,
    host: String,
    token: String,
    cookie: String,
}

struct Answered {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Served {
    fn new(place: &Place) -> Served {
        let running = place.start(&["serve", "--listen", "127.0.0.1:0"]);
        let told = loop {
            let said = running.said();
            if let Some((_, rest)) = said.split_once("page at http://")
                && let Some((address, _)) = rest.split_once('\n')
            {
                break address.to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let (host, token) = told.split_once("/?token=").unwrap();
        let (host, token) = (host.to_owned(), token.to_owned());
        let mut served = Served { _running: running, host, token, cookie: String::new() };
        let entered = served.ask("GET", &format!("/?token={}", served.token), &[], "");
        assert_eq!((entered.status, entered.headers["location"].as_str()), (303, "/"));
        let cookie = &entered.headers["set-cookie"];
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(!cookie.contains(&served.token), "{cookie}");
        served.cookie = cookie.split(';').next().unwrap().to_owned();
        served
    }

    /// A request with these headers beside the length.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.host));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Answered { status, headers: headers.collect(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> String {
        let answered = self.ask("GET", path, &[("Cookie", &self.cookie)], "");
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }

    /// Sends a form as a browser does.
    fn post(&self, path: &str, body: &str) -> Answered {
        let origin = format!("http://{}", self.host);
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask("POST", path, &[("Cookie", &self.cookie), ("Origin", &origin), form], body)
    }

    /// The secret of the forms.
    fn csrf(&self, page: &str) -> String {
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

fn ids(place: &Place) -> [String; 2] {
    ["Redis", "Postgres"].map(|chosen| {
        let all = place.json(&["memory", "list", "--all", "--json"]);
        let found = all.as_array().unwrap().iter().find(|it| it["claim"]["chosen"] == chosen);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    })
}

fn states(place: &Place) -> [String; 2] {
    ids(place).map(|id| {
        place.json(&["memory", "show", &id, "--json"])["state"].as_str().unwrap().to_owned()
    })
}

const PAGES: [&str; 9] = [
    "/", "/?days=7", "/memory", "/memory?section=past", "/review", "/session", "/plans",
    "/search?q=queue", "/style.css",
];

#[test]
fn nothing_is_shown_without_the_secret_of_the_run() {
    let place = left_open();
    let served = Served::new(&place);
    let wrong = format!("{}0", served.cookie);
    let empty = format!("{}=", served.cookie.split('=').next().unwrap());
    for path in PAGES.into_iter().chain(["/?token=guessed", "/memory?token="]) {
        for cookie in [empty.as_str(), wrong.as_str(), "other=1"] {
            let answered = served.ask("GET", path, &[("Cookie", cookie)], "");
            // The page of the refusal is styled.
            let is_asset = path == "/style.css";
            assert_eq!(answered.status, if is_asset { 200 } else { 401 }, "{path}");
            assert!(!answered.body.contains("Redis"), "{path}");
        }
    }
    let [redis, _] = ids(&place);
    let bare = served.ask("GET", &format!("/memory/{redis}"), &[], "");
    assert!(bare.status == 401 && !bare.body.contains("Redis"), "{}", bare.body);
}

#[test]
fn a_conversation_without_a_title_is_shown_by_its_first_words() {
    let place = left_open();
    let served = Served::new(&place);
    let title = place.json(&["status", "--json"])["sessions"][0]["title"].clone();
    assert!(title.is_null(), "{title}");
    let listed = served.get("/session");
    assert!(listed.contains("\"><bdi>We chose"), "{listed}");
}

#[test]
fn two_servers_of_one_machine_keep_both_their_visitors() {
    let place = left_open();
    let servers = [Served::new(&place), Served::new(&place)];
    // A browser has one cookie of each name, for all ports.
    let cookies = servers.each_ref().map(|it| it.cookie.split_once('=').unwrap());
    let kept = BTreeMap::from(cookies).into_iter().map(|(name, value)| format!("{name}={value}"));
    let kept = kept.collect::<Vec<_>>().join("; ");
    for served in &servers {
        assert_eq!(served.ask("GET", "/memory", &[("Cookie", &kept)], "").status, 200);
    }
}

#[test]
fn every_answer_tells_the_browser_to_trust_nothing_else() {
    let place = left_open();
    let served = Served::new(&place);
    for path in PAGES {
        let answered = served.ask("GET", path, &[("Cookie", &served.cookie)], "");
        let policy = &answered.headers["content-security-policy"];
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answered.headers["x-content-type-options"], "nosniff");
        assert_eq!(answered.headers["cache-control"], "no-store");
        assert!(!answered.body.contains(&served.token), "{path}");
    }
}

#[test]
fn another_host_another_page_and_a_forged_form_change_nothing() {
    let place = left_open();
    let served = Served::new(&place);
    let [redis, postgres] = ids(&place);
    let csrf = served.csrf(&served.get("/review"));
    let cookie = ("Cookie", served.cookie.as_str());
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let own = format!("http://{}", served.host);
    let fields = format!("verdict=supersede&one={redis}&other={postgres}");
    let with_csrf = format!("{fields}&csrf={csrf}");
    let foreign = ("Host", "memory.evil.example");
    assert_eq!(served.ask("GET", "/memory", &[foreign, cookie], "").status, 403);
    let origin = ("Origin", own.as_str());
    for (headers, body) in [
        (vec![cookie, form, ("Origin", "http://evil.example")], &with_csrf),
        (vec![cookie, form, ("Origin", "null")], &with_csrf),
        (vec![cookie, form], &with_csrf),
        (vec![cookie, form, origin], &fields),
        (vec![cookie, form, origin], &format!("{fields}&csrf=0")),
    ] {
        let answered = served.ask("POST", "/verdict", &headers, body);
        assert_eq!(answered.status, 403, "{headers:?}: {}", answered.body);
    }
    assert_eq!(served.ask("POST", "/verdict", &[form, origin], &with_csrf).status, 401);
    assert_eq!(states(&place), ["active", "active"]);
}

#[test]
fn reading_changes_nothing() {
    let place = left_open();
    let served = Served::new(&place);
    let [redis, postgres] = ids(&place);
    let ledger = "SELECT count(*) FROM ledger";
    let before = (place.number(ledger), place.number("SELECT count(*) FROM plans"));
    for path in PAGES {
        served.get(path);
    }
    let session = place.json(&["status", "--json"])["sessions"][0]["session"].clone();
    let session = session.as_str().unwrap();
    for path in [format!("/session/{session}"), format!("/forget?session={session}")] {
        served.get(&path);
    }
    let cookie = ("Cookie", served.cookie.as_str());
    let verdict = format!("/verdict?verdict=supersede&one={redis}&other={postgres}");
    for path in [verdict.as_str(), "/jobs/retry", "/plans/0/undo", "/plans/0/redo"] {
        assert_eq!(served.ask("GET", path, &[cookie], "").status, 405, "{path}");
    }
    let now = (place.number(ledger), place.number("SELECT count(*) FROM plans"));
    assert_eq!((now, states(&place)), (before, ["active", "active"].map(str::to_owned)));
}

#[test]
fn a_verdict_is_the_plan_of_the_command_and_is_undone_from_the_page() {
    let place = left_open();
    let served = Served::new(&place);
    let [redis, postgres] = ids(&place);
    let review = served.get("/review");
    assert!(review.contains("contradict each other") && review.contains("We chose"), "{review}");
    let csrf = served.csrf(&review);
    let decide = |verdict: &str, one: &str, other: &str| {
        let fields = format!("csrf={csrf}&back=/review&verdict={verdict}&one={one}&other={other}");
        let answered = served.post("/verdict", &fields);
        assert_eq!(answered.status, 303, "{}", answered.body);
        let (back, plan) = answered.headers["location"].split_once("?done=").unwrap();
        assert_eq!(back, "/review");
        plan.to_owned()
    };
    for (verdict, one, other, expected) in [
        ("supersede", &redis, &postgres, ["superseded", "active"]),
        ("supersede", &postgres, &redis, ["active", "superseded"]),
        ("retract", &redis, &String::new(), ["retracted", "active"]),
        ("keep-both", &redis, &postgres, ["active", "active"]),
    ] {
        let plan = decide(verdict, one, other);
        assert_eq!(states(&place), expected, "{verdict}");
        let page = served.get(&format!("/memory/{redis}"));
        let is_offered = page.contains("Restore: it is in use again");
        assert_eq!(is_offered, expected[0] != "active", "{page}");
        let log = place.json(&["consolidate", "log", "--json"]);
        assert_eq!(log.as_array().unwrap().last().unwrap()["plan"], plan.as_str());
        let told = served.get(&format!("/review?done={plan}"));
        assert!(told.contains("can be undone"), "{told}");
        let undone =
            served.post(&format!("/plans/{plan}/undo"), &format!("csrf={csrf}&plan={plan}"));
        assert_eq!(undone.status, 303, "{}", undone.body);
        assert_eq!(states(&place), ["active", "active"], "{verdict} undone");
        let fields = format!("csrf={csrf}&plan={plan}");
        assert_eq!(served.post(&format!("/plans/{plan}/redo"), &fields).status, 303);
        assert_eq!(states(&place), expected, "{verdict} redone");
        assert_eq!(served.post(&format!("/plans/{plan}/undo"), &fields).status, 303);
    }
    let page = served.get(&format!("/memory/{redis}"));
    assert!(page.contains("<mark>") && page.contains("s1.jsonl"), "{page}");
    assert!(page.contains("found by shared words"), "{page}");
    // An undone plan cannot be undone, and a notice is one of ours.
    let told = served.get(&format!("/review?done={}&told=You+won", decided_last(&place)));
    assert!(!told.contains("can be undone") && !told.contains("You won"), "{told}");
    assert!(served.get("/plans").contains("kept both by a person: "));
    let elsewhere =
        format!("csrf={csrf}&back=//evil.example&verdict=keep-both&one={redis}&other={postgres}");
    let location = served.post("/verdict", &elsewhere).headers["location"].clone();
    assert!(location.starts_with(&format!("/memory/{redis}?done=")), "{location}");
}

#[test]
fn a_verdict_that_is_in_force_already_says_so_and_writes_nothing() {
    let place = Place::with_examples();
    place.json(&BY_RULE);
    let served = Served::new(&place);
    let all = place.json(&["memory", "list", "--json"]);
    let mut open = all.as_array().unwrap().iter().filter(|it| it["stage"] == "proposed");
    let closed = open.find(|it| it["kind"] == "request").unwrap();
    let same = |it: &&serde_json::Value| it["namespace"] == closed["namespace"];
    let two = open.filter(same).map(|it| it["id"].as_str().unwrap()).collect::<Vec<_>>();
    let (closed, [one, other]) = (closed["id"].as_str().unwrap(), [two[0], two[1]]);
    let csrf = served.csrf(&served.get(&format!("/memory/{closed}")));
    for (verdict, one, other, status, already) in [
        ("close", closed, "", 303, "is already closed"),
        ("reopen", closed, "", 303, "is already open"),
        ("keep-both", one, other, 303, "person already decided that both hold"),
        ("keep-both", other, one, 400, "person already decided that both hold"),
        ("supersede", one, other, 303, "has already superseded"),
    ] {
        let fields = format!("csrf={csrf}&verdict={verdict}&one={one}&other={other}");
        let plans = "SELECT count(*) FROM plans";
        assert_eq!(served.post("/verdict", &fields).status, status, "{verdict}");
        let before = place.number(plans);
        let again = served.post("/verdict", &fields);
        assert!(again.status == 400 && again.body.contains(already), "{verdict}: {}", again.body);
        assert_eq!(place.number(plans), before, "{verdict}");
    }
    place.run(&["memory", "supersede", one, other]).refused(2, &["already"]);
}

#[test]
fn a_hostile_transcript_is_text() {
    let script = "<script>alert(1)</script>";
    let words =
        format!("We chose {script} over \"onload=x because \u{202e}evil\u{2066} \u{1b}[2J it is.");
    let stub = judge(|_| Answer::Call(serde_json::json!({"dispositions": []})));
    let place = said_by(&stub, &[("user", &words)]);
    place.json(&BY_RULE);
    let served = Served::new(&place);
    let session = place.json(&["status", "--json"])["sessions"][0]["session"].clone();
    let session = format!("/session/{}", session.as_str().unwrap());
    let mut pages = vec![served.get(&session), served.get("/memory"), served.get("/?days=7")];
    pages.push(served.get("/search?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE"));
    assert!(pages[0].contains("&lt;script&gt;alert(1)"), "{}", pages[0]);
    assert!(pages[0].contains("<mark>"), "the words of its record are marked: {}", pages[0]);
    for page in pages {
        assert!(!page.contains(script), "{page}");
        let is_hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!page.contains(is_hidden) && !page.contains(['\u{202e}', '\u{2066}']), "{page}");
    }
}

/// The text of a page, without the escapes of HTML.
fn text(page: &str) -> String {
    let escapes =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/")];
    let plain = escapes.iter().fold(page.to_owned(), |text, (from, to)| text.replace(from, to));
    plain.replace("&amp;", "&")
}

#[test]
fn an_extraction_shows_what_the_model_was_asked_and_what_it_answered() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let bodies = Arc::clone(&sent);
    let stub = Stub::new(move |ask| {
        bodies.lock().unwrap().push(ask.body["messages"].clone());
        let is_first = ask.body["messages"].as_array().is_some_and(|it| it.len() == 2);
        if is_first { Answer::Words("Let me think.".to_owned()) } else { ask.good() }
    });
    let place = said_by(&stub, &[("user", &format!("{} Password: hunter2secret", CHOICES[0]))]);
    let served = Served::new(&place);
    let session = place.json(&["status", "--json"])["sessions"][0]["session"].clone();
    let page = served.get(&format!("/session/{}", session.as_str().unwrap()));
    let (_, run) = page.split_once("href=\"/run/").unwrap();
    let run = format!("/run/{}", run.split('"').next().unwrap());
    let page = text(&served.get(&run));
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    assert_eq!(sent.len(), 2, "it is reminded");
    for message in sent.iter().flat_map(|it| it.as_array().unwrap()) {
        let words = message["content"].as_str().unwrap();
        assert!(page.contains(words), "{words}\n{page}");
    }
    assert_eq!(page.matches("is that of the request that was sent").count(), 2, "{page}");
    assert!(page.contains("\n            \"chosen\": \"Redis\""), "{page}");
    assert!(page.contains("Let me think.") && !page.contains("hunter2"), "{page}");
    place.sql().execute("UPDATE runs SET model = 'another'", []).unwrap();
    let page = served.get(&run);
    assert!(page.contains("what was sent may differ") && page.contains("Let me think."), "{page}");
    assert_eq!(page.matches("cannot be built again").count(), 2, "{page}");
}

#[test]
fn what_is_open_is_listed_by_project_and_what_failed_with_its_command() {
    let projects = ["gutters", "roofs", "walls"];
    let stub = Stub::new(move |ask| {
        let Some(project) = projects.iter().find(|it| ask.slice().contains(**it)) else {
            return Answer::Words("No.".to_owned());
        };
        let summary = format!("plaster the {project} so that the damp stays out");
        let request = serde_json::json!({"intent": "the damp stays out", "summary": summary});
        Answer::Call(serde_json::json!({"requests": [request]}))
    });
    let place = Place::with_endpoint(stub.url());
    for (day, project) in (1..).zip(projects) {
        let words = format!("Please plaster the {project} so that the damp stays out.");
        place.write(&format!("t/{project}.jsonl"), talk(project, day, ("user", &words)));
    }
    place.write("t/a b.jsonl", talk("shed", 9, ("user", "There is nothing to say about it.")));
    assert_eq!(place.run(&["replay", "t", "--json"]).code, 1);
    for project in projects {
        place.json(&["consolidate", "--namespace", &format!("home/dev/{project}"), "--json"]);
    }
    let today = text(&Served::new(&place).get("/"));
    let (_, open) = today.split_once("<h2 id=\"open\">").unwrap();
    let (open, rest) = open.split_once("</section>").unwrap();
    let listed: Vec<&str> = open.split("<h3>").skip(1).collect();
    assert_eq!(listed.len(), projects.len(), "{open}");
    for (part, project) in listed.iter().zip(projects) {
        assert!(part.contains(&format!("<bdi>home/dev/{project}</bdi></a></h3>")), "{part}");
        assert!(part.contains(&format!("plaster the {project}")), "{part}");
    }
    assert!(today.contains("href=\"#failed\""), "{today}");
    assert!(rest.contains("try again: <code>annalist replay 't/a b.jsonl'</code>"), "{rest}");
}

#[test]
fn what_waits_is_shown_before_it_is_applied_and_what_is_forgotten_before_it_is_gone() {
    let place = Place::with_examples();
    let served = Served::new(&place);
    let plans = served.get("/plans");
    let (_, rest) = plans.split_once("/plans/next?namespace=").unwrap();
    let namespace = rest.split('"').next().unwrap().to_owned();
    let next = served.get(&format!("/plans/next?namespace={namespace}"));
    assert_eq!(place.json(&["memory", "list", "--json"]), serde_json::json!([]));
    let (_, rest) = next.split_once("name=\"plan\" value=\"").unwrap();
    let plan = rest.split('"').next().unwrap();
    let csrf = served.csrf(&next);
    let fields =
        |answer: &str| format!("csrf={csrf}&namespace={namespace}&plan={plan}&answer={answer}");
    let refused = served.post("/plans/next", &fields("refuse"));
    assert_eq!(refused.status, 303, "{}", refused.body);
    let shown = served.get(&refused.headers["location"]);
    assert!(shown.contains(" · refused 2") && !shown.contains("href=\"/memory/"), "{shown}");
    assert!(served.get("/plans").contains("\"state bad\">refused<"));
    assert!(place.run(&["consolidate", "log"]).stdout.contains("refused: "));
    assert_eq!(place.json(&["memory", "list", "--json"]), serde_json::json!([]));
    let redone = served.post(&format!("/plans/{plan}/redo"), &format!("csrf={csrf}&plan={plan}"));
    assert_eq!(redone.status, 303, "{}", redone.body);
    assert!(served.get(&redone.headers["location"]).contains("when you accept this plan"));
    let accepted = served.post("/plans/next", &fields("accept"));
    assert!(accepted.headers["location"].starts_with("/plans?done="), "{}", accepted.body);
    let before = place.json(&["memory", "list", "--json"]).as_array().unwrap().len();
    assert!(before > 0);
    let project = namespace.replace("%2F", "/").replace("%2D", "-");
    let status = place.json(&["status", "--all", "--json"]);
    let mut sessions = status["sessions"].as_array().unwrap().iter();
    let session = &sessions.find(|it| it["namespace"] == project.as_str()).unwrap()["session"];
    let session = session.as_str().unwrap();
    let few = format!("/forget?session={}", &session[..3]);
    let few = served.ask("GET", &few, &[("Cookie", &served.cookie)], "");
    assert!(few.status == 400 && few.body.contains("at least 4 characters"), "{}", few.body);
    let all = served.get(&format!("/forget?session={session}"));
    assert!(all.contains("would erase") && all.contains("is ignored from now on"), "{all}");
    let (_, records) = all.split_once("<h2>Records</h2>").unwrap();
    let (records, memories) = records.split_once("<h2>Memories</h2>").unwrap();
    let own = place.json(&["records", "--session", session, "--json"]);
    assert_eq!(records.matches("<li>").count(), own.as_array().unwrap().len(), "{records}");
    assert!(!memories.contains("Files of the directory"), "{memories}");
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--namespace", &project, "--json"]);
    let all = served.get(&format!("/forget?session={session}"));
    let (_, files) = all.split_once("Files of the directory that show them").unwrap();
    assert!(files.contains(".md</bdi>"), "{files}");
    let record = place.json(&["records", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let one = served.get(&format!("/forget?record={record}"));
    assert!(one.contains("erase <strong>1 record</strong>"), "{one}");
    assert!(one.contains("Its conversation stays") && !one.contains("ignored"), "{one}");
    let unsure = served.post("/forget", &format!("csrf={csrf}&session={session}"));
    assert_eq!(unsure.status, 400, "{}", unsure.body);
    let gone = served.post("/forget", &format!("csrf={csrf}&session={session}&sure=yes"));
    assert!(
        gone.status == 200 && gone.body.contains("none is left")
            || gone.body.contains("others contain"),
        "{}",
        gone.body
    );
    let cookie = ("Cookie", served.cookie.as_str());
    let left = served.ask("GET", &format!("/session/{session}"), &[cookie], "");
    assert_eq!(left.status, 404);
}

#[test]
fn today_tells_of_undated_conversations_and_of_what_hooks_could_not_enqueue() {
    let mut place = Place::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let [path, cassette] =
        ["sessions/plain-retro.txt", "cassette"].map(|it| format!("{examples}/{it}"));
    place.json(&["replay", &path, "--cassette", &cassette, "--json"]);
    place.write("t.jsonl", claude(0..1));
    place.write("file", "x");
    place.set("ANNALIST__STORE__URL", &format!("sqlite:{}", place.path("file/a.db").display()));
    assert_eq!(run(&place, "session-end", &serde_json::json!({})).code, 0);
    until_failed(&place);
    place.unset("ANNALIST__STORE__URL");
    let today = Served::new(&place).get("/");
    assert!(today.contains("1 undated conversation is not shown"), "{today}");
    assert!(today.contains("1 transcript from hooks since"), "{today}");
    assert!(today.contains("annalist enqueue") && today.contains("t.jsonl</code>"), "{today}");
}

#[test]
fn a_search_with_more_hits_than_it_shows_says_so() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..41));
    place.json(&["replay", "s.jsonl", "--json"]);
    let page = Served::new(&place);
    assert!(page.get("/search?kind=decision").contains("The best 40, best match first"));
    assert!(page.get("/search?kind=request").contains("Nothing found<"));
}

#[test]
fn a_plan_with_more_changes_than_its_page_shows_says_so_and_how_they_are_seen() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..120));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.run(&["consolidate", "--no-model"]);
    let log = place.json(&["consolidate", "log", "--json"]);
    let (plan, changed) = (log[0]["plan"].as_str().unwrap(), log[0]["counts"]["add"].as_u64());
    let page = Served::new(&place);
    let path = format!("/plans/{plan}");
    let more = format!("<p>And {} more.</p>", changed.unwrap() - 100);
    assert!(page.get(&path).contains(&more), "{more} {log}");
    let padded = "UPDATE plans SET body = body || printf('%.*c', 2200000, ' ')";
    place.sql().execute(padded, []).unwrap();
    let shown = page.get(&path);
    assert!(shown.contains("too many changes to show"), "{shown}");
    for command in ["annalist consolidate log --json", "annalist memory history ID"] {
        assert!(shown.contains(command), "{shown}");
    }
}

#[test]
fn a_label_of_a_record_finds_its_memory_wherever_one_searches() {
    let mut place = Place::with_examples();
    place.set("ANNALIST__NAMESPACE", "home/dev/ledger");
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--json"]);
    let hits = place.json(&["search", "adr-1", "--json"]);
    assert_eq!(hits.as_array().unwrap().len(), 1, "{hits}");
    let new = ["token", "new", "laptop", "--namespace", "home/dev/ledger", "--can", "read"];
    let token = place.json(&[&new[..], &["--json"]].concat())["token"].clone();
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    let page = Served::new(&place);
    let memory = hits[0]["id"].as_str().unwrap().trim_start_matches("src-");
    // The second time, of a directory that came with the project and was never synced here.
    for _ in 0..2 {
        let shown = page.get("/search?q=ADR-001");
        assert!(shown.contains("1 found") && shown.contains(memory), "{shown}");
        let sent = page.ask("GET", "/v1/search?query=ADR-001", &[("authorization", &*bearer)], "");
        assert_eq!(sent.body.parse::<serde_json::Value>().unwrap(), hits);
        assert_eq!(place.json(&["search", "ADR-001", "--json"]), hits);
        place.sql().execute("DELETE FROM memory_dirs", []).unwrap();
    }
    assert!(page.get("/search?q=ADR-999").contains("Nothing found<"));
    assert!(page.get("/memory/ADR-001").contains(memory));
}

#[test]
fn a_conversation_from_another_machine_names_its_sender_and_misses_no_file() {
    let place = Place::new();
    let new = ["token", "new", "laptop", "--namespace", "roofs", "--can", "write", "--json"];
    let bearer = format!("Bearer {}", place.json(&new)["token"].as_str().unwrap());
    let page = Served::new(&place);
    let headers = [("authorization", bearer.as_str())];
    let sent = page.ask("POST", "/v1/transcripts?name=s.jsonl", &headers, &claude(0..1));
    let sent: serde_json::Value = serde_json::from_str(&sent.body).unwrap();
    let id = sent["sessions"][0]["session"].as_str().unwrap();
    let shown = page.get(&format!("/session/{id}"));
    assert!(shown.contains("received over HTTP from <bdi>laptop</bdi>"), "{shown}");
    assert!(!shown.contains("The file is gone"), "{shown}");
}

#[test]
fn a_search_that_is_sent_off_also_goes_by_meaning_and_one_while_typing_does_not() {
    let stub = Stub::new(about_flaky);
    let mut place = Place::with_examples();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    place.set("ANNALIST__SEARCH__EMBEDDINGS", "small");
    let page = Served::new(&place);
    assert!(page.get("/search?q=unreliable&live=1").contains("Nothing found<"));
    assert_eq!(stub.count(), 0, "a keystroke is not paid for");
    let found = page.get("/search?q=unreliable");
    assert!(found.contains("flaky"), "{found}");
    let named = place.json(&["records", "--json"])[0]["namespace"].as_str().unwrap().to_owned();
    let new = ["token", "new", "other", "--namespace", &named, "--can", "read", "--json"];
    let token = place.json(&new)["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let answered = page.ask("GET", "/v1/search?query=unreliable", &headers, "");
    assert!(answered.status == 200 && answered.body.contains("headline"), "{}", answered.body);
}

#[test]
fn a_failure_that_was_solved_is_said_to_be_solved() {
    let place = Place::with_examples();
    place.json(&BY_RULE);
    let failed = place.json(&["search", "--failed", "--all", "--json"]);
    let failed = failed.as_array().unwrap();
    let of = |state: &str| failed.iter().filter(|it| it["state"] == state).count();
    assert!(of("completed") == 2 && of("current") >= 2, "{failed:?}");
    let page = Served::new(&place);
    let solved = failed.iter().find(|it| it["state"] == "completed").unwrap();
    let memories = place.json(&["memory", "list", "--all", "--json"]);
    let is_it = |memory: &&serde_json::Value| {
        memory["records"].as_array().unwrap().contains(&solved["record"])
    };
    let memory = memories.as_array().unwrap().iter().find(is_it).unwrap();
    let shown = page.get(&format!("/memory/{}", memory["id"].as_str().unwrap()));
    assert!(
        shown.contains(r#"<span class="state good">solved by <a href="/memory/src-"#),
        "{shown}"
    );
    assert!(shown.contains("<dt>solved by</dt><dd><a "), "{shown}");
    let unsure = memories.as_array().unwrap().iter().find(|it| !it["possibly"].is_null()).unwrap();
    let words = unsure["possibly"].as_str().unwrap().split(" src-").next().unwrap();
    let list = format!("/memory?namespace={}", unsure["namespace"].as_str().unwrap());
    for path in [format!("/memory/{}", unsure["id"].as_str().unwrap()), list] {
        let shown = page.get(&path);
        assert!(shown.contains(&format!(", {words} <a href=\"/memory/src-")), "{path}: {shown}");
    }
}

/// The plan that was applied last.
fn decided_last(place: &Place) -> String {
    let log = place.json(&["consolidate", "log", "--json"]);
    log.as_array().unwrap().last().unwrap()["plan"].as_str().unwrap().to_owned()
}

#[test]
fn an_address_of_nothing_says_what_is_so() {
    let place = left_open();
    let served = Served::new(&place);
    let html = ("Accept", "text/html,*/*");
    let cookie = ("Cookie", served.cookie.as_str());
    let session = place.json(&["status", "--json"])["sessions"][0]["session"].clone();
    let session = format!("/session/{}?page=99", session.as_str().unwrap());
    for (path, expected) in [
        ("/session?page=99999999", "<p>This list has no such page</p>"),
        (&session, "<p>This list has no such page</p>"),
        ("/nope", "<p>There is no page at this address</p>"),
        ("/memory/", "<p>There is no page at this address</p>"),
        ("/v1/nope", "\"no such operation\""),
    ] {
        let answered = served.ask("GET", path, &[cookie, html], "");
        assert_eq!(answered.status, 404, "{path}");
        assert!(answered.body.contains(expected), "{path}: {}", answered.body);
    }
    for (path, expected) in [
        ("/review?page=99", "1. These contradict each other."),
        ("/memory?namespace=nope", "There is no project of this name"),
        ("/search?q=a", "Nothing to search for: use a rarer word, of 2 to 64 letters."),
        ("/search", " autofocus>"),
    ] {
        let page = served.get(path);
        assert!(page.contains(expected), "{path}: {page}");
    }
    let own = format!("http://{}", served.host);
    let from = format!("{own}/review?page=2");
    let headers = [cookie, ("Origin", own.as_str()), ("Referer", from.as_str())];
    let refused = served.ask("POST", "/verdict", &headers, "");
    let back = "review?page=2\">Back</a>";
    assert!(refused.status == 400 && refused.body.contains(back), "{}", refused.body);
    for headers in [&[cookie, html][..], &[cookie, html, ("Origin", own.as_str())]] {
        let refused = served.ask("POST", "/memory", headers, "");
        let said = "<p>This address does not take this kind of request</p>";
        assert!(refused.status == 405 && refused.body.contains(said), "{}", refused.body);
    }
    let unknown = served.ask("GET", "/memory", &[], "").body;
    assert!(unknown.contains("<p>Open the address that <code>annalist serve</code>"), "{unknown}");
    let none = Place::new();
    none.json(&["token", "new", "laptop", "--namespace", "roofs", "--can", "read", "--json"]);
    assert!(Served::new(&none).get("/search?q=queue").contains("Nothing has been read yet"));
}

#[test]
fn a_linked_line_comes_with_its_own_speaker() {
    let stub = judge(|_| Answer::Call(serde_json::json!({"dispositions": []})));
    let words = "We chose Redis over Postgres because the queue needs low latency.";
    let place = said_by(&stub, &[("assistant", words), ("user", words)]);
    place.json(&BY_RULE);
    let memories = place.json(&["memory", "list", "--json"]);
    assert_eq!(
        (memories.as_array().unwrap().len(), &memories[0]["said_by"]),
        (1, &"person".into())
    );
    let listed = Served::new(&place).get("/memory");
    assert!(listed.contains("said by the agent"), "{listed}");
}

#[test]
fn a_store_that_another_process_has_locked_is_said_to_be() {
    let place = left_open();
    let served = Served::new(&place);
    let [redis, postgres] = ids(&place);
    let csrf = served.csrf(&served.get("/review"));
    let locked = place.sql();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let fields = format!("csrf={csrf}&verdict=supersede&one={redis}&other={postgres}");
    let refused = served.post("/verdict", &fields);
    assert_eq!((refused.status, refused.headers["retry-after"].as_str()), (503, "5"));
    assert!(refused.body.contains("another process has locked it"), "{}", refused.body);
}
