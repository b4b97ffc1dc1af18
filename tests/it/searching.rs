//! Search as people have it, the same on both stores.

use super::judging::{BY_RULE, CHOICES, judge, opposed, place as talks, says};
use super::place::{ANNALIST, Place, read};
use super::stub::{Answer, Ask, Stub};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Names of fields, which every record has.
const FIELDS: [&str; 11] = [
    "options", "chosen", "rationale", "topic", "points", "action", "result", "succeeded", "intent",
    "target", "summary",
];

/// The examples in a file, and on a server where there is one.
fn places() -> impl Iterator<Item = Place> {
    [Some(Place::new()), Place::new().on_server()].into_iter().flatten().inspect(|place| {
        let root = env!("CARGO_MANIFEST_DIR");
        let [sessions, cassette] =
            ["sessions", "cassette"].map(|it| format!("{root}/examples/{it}"));
        place.json(&["replay", &sessions, "--cassette", &cassette, "--json"]);
    })
}

fn words(record: &Value) -> Vec<String> {
    let text = record["claim"].to_string().to_lowercase();
    let words = text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned);
    words.filter(|word| word.len() > 4 && !FIELDS.contains(&word.as_str())).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn a_query_that_is_too_long_is_refused_in_a_line() {
    let place = Place::with_examples();
    let long = place.run(&["search", &"seal ".repeat(4_000)]);
    long.refused(2, &["20000 letters: expected at most 4000"]);
    assert!(long.stderr.len() < 200, "{}", long.stderr);
}

#[test]
fn every_record_is_found_by_its_rarest_word_until_it_is_forgotten() {
    for place in places() {
        let records = place.json(&["records", "--json"]);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for word in list(&records).iter().flat_map(words) {
            *counts.entry(word).or_default() += 1;
        }
        let rarest = |record: &Value| {
            words(record).into_iter().min_by_key(|it| (counts[it], Reverse(it.len()))).unwrap()
        };
        let ids = |word: &str| -> Vec<Value> {
            let told = place.run(&["search", word, "--all", "--limit", "50", "--json"]).json();
            list(&told).iter().map(|hit| hit["record"].clone()).collect()
        };
        assert!(list(&records).len() > 5);
        for record in list(&records) {
            let word = rarest(record);
            assert!(ids(&word).contains(&record["id"]), "{word}: {record}");
        }
        // What an older version wrote is entered by the first search.
        let gone = &records[0];
        let rows = place.number("SELECT count(*) FROM search");
        let old = "INSERT INTO unsearched (no) SELECT no FROM records";
        let unfilled = "DELETE FROM search WHERE rowid > 0";
        if place.database().exists() {
            place.sql().execute_batch(&format!("{old}; {unfilled}")).unwrap();
        } else {
            for change in [old, unfilled] {
                place.number(&format!("WITH it AS ({change} RETURNING 1) SELECT count(*) FROM it"));
            }
        }
        assert!(ids(&rarest(gone)).contains(&gone["id"]));
        assert_eq!(place.number("SELECT count(*) FROM search"), rows);
        let id = gone["id"].as_str().unwrap();
        let told = place.run(&["forget", "--record", id, "--yes"]);
        assert_eq!(told.code, 0, "{}", told.stderr);
        assert!(!ids(&rarest(gone)).contains(&gone["id"]));
        assert_eq!(place.number("SELECT count(*) FROM search"), rows - 1);
    }
}

#[test]
fn filters_leave_out_what_does_not_fit() {
    for place in places() {
        let all = place.json(&["search", "--all", "--limit", "99", "--json"]);
        let some = |args: &[&str]| {
            let args = [&["search", "--all", "--limit", "99", "--json"], args].concat();
            let told = place.run(&args).json();
            list(&told).to_vec()
        };
        let decisions = some(&["--kind", "decision"]);
        assert!(!decisions.is_empty() && decisions.len() < list(&all).len());
        assert!(decisions.iter().all(|hit| hit["kind"] == "decision"));
        let session = all[0]["session"].as_str().unwrap();
        let of_session = some(&["--session", &session[..8]]);
        assert!(!of_session.is_empty() && of_session.iter().all(|hit| hit["session"] == session));
        let path = all[0]["path"].as_str().unwrap();
        assert!(some(&["--path", path]).iter().any(|hit| hit["path"] == path));
        assert_eq!(some(&["--path", "no/such_file%"]), [] as [Value; 0]);
        let those = |fits: &dyn Fn(&Value) -> bool| -> BTreeSet<&str> {
            let hits = list(&all).iter().filter(|hit| fits(hit));
            hits.map(|hit| hit["id"].as_str().unwrap()).collect()
        };
        let is_asked = |hit: &Value| hit["kind"] == "request" || hit["kind"] == "discussion";
        for (filter, expected) in [
            ("--failed", those(&|hit| hit["succeeded"] == false)),
            ("--open", those(&|hit| hit["state"] == "staged" && is_asked(hit))),
        ] {
            let hits = some(&[filter]);
            let found: BTreeSet<&str> =
                hits.iter().map(|hit| hit["id"].as_str().unwrap()).collect();
            assert!(!expected.is_empty() && found == expected, "{filter}: {found:?} {expected:?}");
        }
        assert_eq!(some(&["--since", "2999-01-01"]), [] as [Value; 0]);
        let day = &list(&all).iter().find_map(|hit| hit["at"].as_str()).unwrap()[..10];
        assert!(!some(&["--since", day, "--until", day]).is_empty());
        assert!(list(&all).iter().any(|hit| hit["at"].is_null()));
        let since = ["search", "--all", "--since", "2000-01-01", "--limit", "99", "--json"];
        let told = place.run(&since);
        assert!(list(&told.json()).iter().all(|hit| hit["at"].is_string()));
        let undated = list(&all).iter().filter(|hit| hit["at"].is_null()).count();
        let note = format!("{undated} records without a time left out: --undated lists them too");
        assert!(told.stderr.contains(&note), "{}", told.stderr);
        let told = place.run(&[&since[..], &["--undated"]].concat());
        assert_eq!(list(&told.json()).len(), list(&all).len(), "{}", told.stderr);
        assert!(!told.stderr.contains("without a time"), "{}", told.stderr);
        let of_none = some(&["--until", "1999-01-01", "--undated"]);
        assert_eq!(of_none.len(), undated);
        let without = place.run(&["search", "--all", "--undated"]);
        assert!(without.code == 2 && without.stderr.contains("--since"), "{}", without.stderr);
    }
}

#[test]
fn a_hit_is_a_line_with_an_id_for_why_and_nothing_found_is_a_failure() {
    let place = places().next().unwrap();
    let hit = place.json(&["search", "--all", "--kind", "decision", "--json"])[0].clone();
    let id = hit["id"].as_str().unwrap();
    let told = place.run(&["search", "--all", "--kind", "decision"]);
    let line = told.stdout.lines().next().unwrap();
    assert!(line.starts_with(id) && line.contains("  decision    staged"), "{line}");
    assert!(line.contains(hit["headline"].as_str().unwrap()), "{line}");
    assert_eq!(place.run(&["why", id]).code, 0);
    let csv = place.run(&["search", "--all", "--format", "csv"]).stdout;
    assert!(csv.starts_with("\"id\",\"date\",\"kind\",\"state\",\"words\",\"claim\"\n"), "{csv}");
    let none = place.run(&["search", "qqqqq", "--all"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert!(none.stderr.starts_with("nothing found in all namespaces: "), "{}", none.stderr);
    let namespace = hit["namespace"].as_str().unwrap();
    let none = place.run(&["search", "qqqqq", "--namespace", namespace]);
    assert!(none.stderr.contains("fewer filters"), "{}", none.stderr);
    place.run(&["search", "what", "did", "we"]).refused(2, &["rarer"]);
    place.run(&["search", "x", "--since", "soon"]).refused(2, &["yesterday"]);
}

#[test]
fn a_hit_is_quoted_with_the_words_of_its_claim_and_not_with_those_of_an_option() {
    let place = Place::with_examples();
    let records = place.json(&["records", "--json"]);
    let evidence = |hit: &Value| {
        let record = list(&records).iter().find(|it| it["id"] == hit["record"]).unwrap();
        let evidence = list(&record["evidence"]).iter().filter(|it| it["words"] == hit["words"]);
        evidence.map(|it| it["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for words in [&[][..], &["queue"], &["Redis", "streams"]] {
        let hits =
            place.json(&[&["search", "--all", "--kind", "decision", "--json"], words].concat());
        for hit in list(&hits) {
            let fields = evidence(hit);
            let is_claim = fields.iter().any(|field| !field.starts_with("options["));
            assert!(is_claim, "{words:?}: {fields:?}: {hit}");
        }
    }
}

#[test]
fn nothing_found_is_one_line_and_the_current_folder_is_a_namespace() {
    let place = Place::with_examples();
    let none = |args: &[&str], line: &str| {
        let told = place.run(args);
        assert_eq!((told.stdout.as_str(), told.stderr.trim_end()), ("", line), "{args:?}");
    };
    let unknown = "this folder is of no known project";
    let all = format!("nothing found: all namespaces are searched, since {unknown}");
    none(&["search", "zeppelin"], &all);
    none(&["search", "queue", "--namespace", "."], &format!("nothing found: {unknown}"));
    none(&["open", "--namespace", "."], &format!("nothing is open: {unknown}"));
    let misspelt = "no namespace `zeppelin`; nearest: ";
    for command in [&["search", "queue"][..], &["open"]] {
        let told = place.run(&[command, &["--namespace", "zeppelin"]].concat()).stderr;
        assert!(told.lines().count() == 1 && told.contains(misspelt), "{told}");
    }
    let [sessions, cassette] =
        ["sessions", "cassette"].map(|it| format!("{}/examples/{it}", env!("CARGO_MANIFEST_DIR")));
    let place = Place::new();
    place.json(&["replay", &sessions, "--cassette", &cassette, "--namespace", ".", "--json"]);
    assert!(!list(&place.json(&["search", "queue", "--namespace", ".", "--json"])).is_empty());
}

#[test]
fn what_is_not_proven_stands_below_everything_else_that_is_found() {
    for place in places() {
        let words = "measure the queue with cargo bench";
        let hits = place.json(&["search", words, "--all", "--limit", "99", "--json"]);
        let states: Vec<&Value> = list(&hits).iter().map(|hit| &hit["state"]).collect();
        let unproven = states.iter().position(|it| **it == "quarantined").unwrap();
        assert!(0 < unproven && unproven == states.len() - 1, "{states:?}");
    }
}

#[test]
fn what_was_superseded_stands_below_what_took_its_place() {
    let stub = judge(|_| Answer::Call(json!({"dispositions": [says("x", "new", None, None)]})));
    let place = opposed(&stub);
    place.json(&BY_RULE);
    let all = place.json(&["memory", "list", "--json"]);
    let [redis, postgres] = ["Redis", "Postgres"].map(|chosen| {
        let found = list(&all).iter().find(|it| it["claim"]["chosen"] == chosen).unwrap();
        format!("src-{}", &found["id"].as_str().unwrap()[..8])
    });
    place.json(&["memory", "supersede", &redis, &postgres, "--json"]);
    let hits = place.json(&["search", "Redis", "--all", "--json"]);
    let of = |id: &str| list(&hits).iter().position(|hit| hit["id"] == id).unwrap();
    assert!(of(&postgres) < of(&redis), "{hits}");
    assert_eq!(hits[of(&postgres)]["state"], "current");
    assert_eq!(hits[of(&redis)]["superseded_by"], json!(postgres));
    let text = place.run(&["search", "Redis", "--all"]).stdout;
    assert!(text.contains(&format!("superseded by {postgres}")), "{text}");
}

#[test]
fn the_successor_of_a_hit_is_left_out_where_it_does_not_fit_the_filter() {
    let stub = judge(|_| Answer::Call(json!({"dispositions": [says("x", "new", None, None)]})));
    let place = opposed(&stub);
    place.json(&BY_RULE);
    let hits = place.json(&["search", "--all", "--json"]);
    let [redis, postgres] = ["latency", "restart"].map(|words| {
        let it = list(&hits).iter().find(|it| it["words"].as_str().unwrap().contains(words));
        it.unwrap().clone()
    });
    let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
    place.json(&["memory", "supersede", &id(&redis), &id(&postgres), "--json"]);
    let found = |args: &[&str]| {
        let hits = place.json(&[&["search", "latency", "--all", "--json"], args].concat());
        list(&hits).iter().map(id).collect::<Vec<String>>()
    };
    assert_eq!(found(&[]), [id(&postgres), id(&redis)]);
    for (filter, field) in [("--session", "session"), ("--path", "path")] {
        assert_eq!(found(&[filter, redis[field].as_str().unwrap()]), [id(&redis)], "{filter}");
    }
    assert_eq!(found(&["--state", "superseded"]), [id(&redis)]);

    let place = Place::with_examples();
    place.json(&BY_RULE);
    let all = place.json(&["memory", "list", "--json"]);
    let kinds = |it: &Value| it["kind"] == "discussion" || it["kind"] == "decision";
    let pair = list(&all).iter().filter(|it| kinds(it)).find_map(|one| {
        let fits = |other: &&Value| other["namespace"] == one["namespace"];
        let mut others = list(&all).iter().filter(fits);
        let other = others.find(|other| one["kind"] == "discussion" && other["kind"] == "decision");
        other.map(|other| [one, other].map(|it| it["id"].as_str().unwrap().to_owned()))
    });
    let [discussion, decision] = pair.unwrap();
    place.json(&["memory", "supersede", &discussion, &decision, "--json"]);
    let hits = place.json(&["search", "--all", "--kind", "discussion", "--json"]);
    assert!(list(&hits).iter().any(|it| it["state"] == "superseded"), "{hits}");
    assert!(list(&hits).iter().all(|it| it["kind"] == "discussion"), "{hits}");
}

#[test]
fn what_conflicts_is_found_so_and_the_later_stands_above() {
    let stub = judge(|_| panic!("nobody is to be asked"));
    let place = opposed(&stub);
    place.json(&BY_RULE);
    let hits = place.json(&["search", "Redis", "queue", "--all", "--conflicting", "--json"]);
    let both: Vec<&Value> = list(&hits).iter().collect();
    assert_eq!(both.len(), 2, "{hits}");
    assert!(both.iter().all(|hit| hit["state"] == "conflicting"), "{hits}");
    // The words of the query are the earlier one's.
    let hits = place.json(&["search", "Redis", "--all", "--json"]);
    let [later, earlier] = [&hits[0], &hits[1]];
    assert!(earlier["at"].as_str() < later["at"].as_str(), "{hits}");
    assert_eq!((&earlier["outdated_by"], &later["outdated_by"]), (&later["id"], &Value::Null));
    let text = place.run(&["search", "Redis", "--all"]).stdout;
    let with = format!("conflicting with {}", later["id"].as_str().unwrap());
    assert!(text.lines().nth(1).is_some_and(|line| line.contains(&with)), "{text}");
    let only = place.json(&["search", "Redis", "--all", "--conflicting", "--json"]);
    assert_eq!(only, hits, "a filter by state does not change the order");
    let [later, earlier] = [later, earlier].map(|hit| hit["id"].as_str().unwrap());
    place.json(&["memory", "supersede", earlier, later, "--json"]);
    let none = place.run(&["search", "--all", "--conflicting"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""), "what was replaced conflicts no more");
}

#[test]
fn a_certain_contradiction_is_named_and_moved_before_a_later_pair_that_is_left_open() {
    let stub = judge(|_| panic!("nobody is to be asked"));
    let open = "We chose tabs over spaces because the printer queue needs them.";
    let said = [CHOICES[0], CHOICES[1], open].map(|words| ("user", words));
    let place = talks(&stub, &said);
    place.json(&BY_RULE);
    let left_open = "INSERT OR REPLACE INTO open_pairs (record, memory, namespace, plan_no, rule)
        SELECT d.record, a.id, a.namespace, d.plan_no, 'reversal'
        FROM dispositions d JOIN memories c ON c.id = d.memory, memories a
        WHERE json_extract(c.body, '$.claim.chosen') = 'tabs'
            AND json_extract(a.body, '$.claim.chosen') = 'Redis'";
    assert_eq!(place.sql().execute(left_open, []).unwrap(), 1);
    let hits = place.json(&["search", "Redis", "queue", "--all", "--json"]);
    let at = |words: &str| {
        let found = list(&hits).iter().position(|it| it["words"].to_string().contains(words));
        found.unwrap_or_else(|| panic!("{words}: {hits}"))
    };
    let [earlier, certain, _open] = ["latency", "restart", "printer"].map(at);
    assert_eq!(certain + 1, earlier, "{hits}");
    assert_eq!(hits[earlier]["outdated_by"], hits[certain]["id"], "{hits}");
    assert_eq!(hits[earlier]["conflicts_with"], hits[certain]["id"], "{hits}");
}

/// Runs a command on a terminal of five rows; its output and what went to the pager.
#[cfg(target_os = "linux")]
fn on_terminal(place: &Place, pager: &str, args: &str) -> [String; 2] {
    // The default pager shows nothing, and waits for nobody.
    let less = "ln -sf /bin/true less; export PATH=.:$PATH";
    let line = format!("{less}; stty rows 5 cols 80; export PAGER='{pager}'; {ANNALIST} {args}");
    let told = place.start_program(place.program("script", &["-qec", &line, "typed"])).wait();
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    let pages = place.path("pages");
    let pages =
        if pages.exists() { String::from_utf8(read(&pages)).unwrap() } else { String::new() };
    [told.stdout, pages]
}

#[cfg(target_os = "linux")]
#[test]
fn only_what_the_terminal_has_no_room_for_goes_through_a_pager() {
    let place = places().next().unwrap();
    // That there is more is said on the terminal in any case.
    let hits = |shown: &str| shown.lines().filter(|it| !it.contains("--limit N")).count();
    let [shown, pages] = on_terminal(&place, "", "search --all --limit 5");
    assert_eq!((hits(&shown), pages.as_str()), (15, ""), "an empty PAGER is none: {shown}");
    let [shown, pages] = on_terminal(&place, "cat >pages", "search --all --limit 1");
    assert_eq!((hits(&shown), pages.as_str()), (3, ""), "{shown}");
    let [shown, pages] = on_terminal(&place, "cat >pages", "search --all --limit 5");
    assert_eq!((hits(&shown), pages.lines().count()), (0, 15), "{shown}{pages}");
    assert!(pages.lines().all(|line| line.chars().count() <= 80), "{pages}");
}

#[cfg(target_os = "linux")]
#[test]
fn every_command_that_may_print_much_uses_the_pager() {
    let mut place = Place::new();
    place.set("ANNALIST__NAMESPACE", "ours");
    let root = env!("CARGO_MANIFEST_DIR");
    let sessions = format!("{root}/examples/sessions");
    let talk = format!("{sessions}/claude-code-queue.jsonl");
    let replay = format!("replay {sessions} --cassette {root}/examples/cassette --show");
    let of_talk = ["card", "conversation", "dialog"].map(|it| format!("{it} {talk}"));
    let check = |command: &str| {
        let _ = std::fs::remove_file(place.path("pages"));
        let [shown, pages] = on_terminal(&place, "cat >pages", command);
        assert!(pages.lines().count() >= 5, "{command}: {shown}{pages}");
        let last = pages.lines().rfind(|line| !line.trim().is_empty()).unwrap();
        assert!(!shown.contains(last), "{command}: {shown}");
    };
    check(&replay);
    place.run(&["memory", "init"]);
    for command in ["consolidate --dry-run", "memory sync", "records", "status", "open"] {
        check(command);
    }
    of_talk.iter().for_each(|command| check(command));
    for command in ["list", "at 2026-11-01", "search payout queue", "reflect"] {
        check(&format!("memory {command}"));
    }
    ["search queue", "context"].into_iter().for_each(check);
    for name in ["active-context", "patterns", "product-context", "progress"] {
        place.write(&format!(".claude/memory/{name}.md"), "- untitled\n");
    }
    check("memory lint || true");
}

/// Vectors that know one thing: whether a text is about flaky tests.
pub(crate) fn about_flaky(ask: &Ask) -> Answer {
    let texts = ask.body["input"].as_array().unwrap();
    let vector = |text: &Value| {
        let text = text.as_str().unwrap().to_lowercase();
        let is_about = text.contains("flaky") || text.contains("unreliable");
        json!([if is_about { 1.0 } else { 0.1 }, if is_about { 0.1 } else { 1.0 }])
    };
    let data = texts.iter().map(vector).enumerate();
    let data: Vec<Value> =
        data.map(|(index, it)| json!({"index": index, "embedding": it})).collect();
    Answer::Status(200, "", json!({"data": data, "usage": {"prompt_tokens": 40}}).to_string())
}

#[test]
fn with_a_model_of_embeddings_other_words_of_the_same_meaning_are_found() {
    for mut place in places() {
        let search = ["search", "unreliable", "--all", "--json"];
        assert_eq!(place.run(&search).code, 1, "no record has this word");
        let stub = Stub::new(about_flaky);
        place.set("ANNALIST__MODEL__BASE_URL", stub.url());
        assert_eq!(place.run(&search).code, 1);
        assert_eq!(stub.count(), 0, "without the setting nothing is sent");

        place.set("ANNALIST__SEARCH__EMBEDDINGS", "small");
        let of_none = ["search", "unreliable", "--namespace", "nobody", "--json"];
        assert_eq!(place.run(&of_none).code, 1);
        assert_eq!(stub.count(), 1, "only the words are sent where no record is looked for");
        let told = place.json(&search);
        let calls = stub.count();
        let records = place.json(&["records", "--json"]);
        let found = list(&records).iter().find(|it| it["id"] == list(&told)[0]["record"]);
        assert!(found.unwrap().to_string().contains("flaky"), "{told}");
        let records = list(&records).len();
        assert_eq!(calls, records.div_ceil(64) + 2, "the records, and the words twice");
        assert_eq!(place.json(&search), told);
        assert_eq!(stub.count(), calls + 1, "a text is embedded once");
        assert_eq!(place.json(&["status", "--json"])["bill"][0]["for"], "search");

        let session = list(&told)[0]["session"].as_str().unwrap().to_owned();
        assert_eq!(place.run(&["forget", "--session", &session, "--yes"]).code, 0);
        let left = "SELECT count(*) FROM vectors v LEFT JOIN records r ON r.no = v.no
            WHERE r.no IS NULL";
        assert_eq!(place.number(left), 0, "what is forgotten has no vector");
    }
}

#[test]
fn without_an_answer_of_the_model_of_embeddings_words_alone_count() {
    let broken = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    let stub = Stub::new(move |_| Answer::Status(404, "", broken.to_string()));
    let mut place = Place::with_examples();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    let search = ["search", "encoding", "--all", "--json"];
    let expected = place.json(&search);
    place.set("ANNALIST__SEARCH__EMBEDDINGS", "small");
    let run = place.run(&search);
    assert_eq!(run.json(), expected);
    assert!(run.stderr.contains("searched by words alone"), "{}", run.stderr);
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "1");
    let asked = stub.count();
    let run = place.run(&search);
    assert!(run.stderr.contains("limits.day_tokens_max is too small"), "{}", run.stderr);
    assert_eq!(stub.count(), asked, "a cap holds");
}

#[test]
fn what_an_undo_set_aside_is_no_news() {
    for place in places() {
        for told in list(&place.json(&["consolidate", "--no-model", "--json"])) {
            place.json(&["consolidate", "--undo", told["plan"]["id"].as_str().unwrap(), "--json"]);
        }
        let found = place.json(&["search", "payout", "--all", "--json"]);
        let states: Vec<&Value> = list(&found).iter().map(|hit| &hit["state"]).collect();
        assert!(!states.is_empty() && states.iter().all(|it| **it == "discarded"), "{found}");
    }
}
