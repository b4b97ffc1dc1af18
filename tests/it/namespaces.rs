//! Namespaces of conversations: by the repository that it was held in, whatever its folder is called, and kept when
//! the name changes.

use super::place::Place;
use serde_json::{Value, json};
use std::path::Path;

/// A transcript of one conversation in `folder`.
fn talk(place: &Place, name: &str, folder: &Path) -> String {
    let line = |at: usize, role: &str, text: &str| {
        json!({
            "uuid": format!("{name}-{at}"), "sessionId": format!("talk-{name}"), "type": role,
            "cwd": folder, "version": "2.1.0", "timestamp": format!("2026-11-01T10:0{at}:00Z"),
            "message": {"role": role, "content": text},
        })
    };
    let lines = [
        line(0, "user", "Which port does the tile server of the map listen on?"),
        line(1, "assistant", "It listens on port 8443, as the settings of the server say."),
    ];
    let text = lines.map(|line| format!("{line}\n")).concat();
    place.write(&format!("{name}.jsonl"), text).display().to_string()
}

fn clone(place: &Place, folder: &str, url: &str) -> std::path::PathBuf {
    place.write(&format!("{folder}/.git/config"), format!("[remote \"origin\"]\n\turl = {url}\n"));
    place.path(folder)
}

fn with_queue() -> Place {
    Place::with_endpoint("http://127.0.0.1:9/v1")
}

fn names(place: &Place) -> Vec<(String, u64)> {
    let all = place.json(&["namespace", "list", "--json"]);
    let name = |it: &Value| {
        (it["namespace"].as_str().unwrap().to_owned(), it["sessions"].as_u64().unwrap())
    };
    all.as_array().unwrap().iter().map(name).collect()
}

fn enqueue(place: &Place, args: &[&str]) -> u64 {
    let done = place.json(&[&["enqueue", "--json", "--flush"], args].concat());
    done["jobs"].as_u64().unwrap_or_else(|| panic!("{done}"))
}

/// Enqueues a file by its name, from its folder.
fn enqueue_in(place: &Place, folder: &str, name: &str) {
    let mut command = place.command(&["enqueue", "--flush", name]);
    assert!(command.current_dir(place.path(folder)).output().unwrap().status.success());
}

#[test]
fn folders_of_one_name_do_not_meet_and_clones_of_one_repository_do() {
    let place = with_queue();
    for client in ["client-a", "client-b"] {
        let url = format!("git@Example.org:{client}/app.git");
        let folder = clone(&place, &format!("{client}/app"), &url);
        enqueue(&place, &[&talk(&place, client, &folder.join("src"))]);
    }
    let again = clone(&place, "elsewhere", "https://me:pw@example.org:8443/client-a/app");
    enqueue(&place, &[&talk(&place, "again", &again)]);
    enqueue(&place, &[&talk(&place, "gone", Path::new("/nowhere/client-c/app"))]);
    enqueue(&place, &[&talk(&place, "home", &place.path("home/work/app"))]);
    let expected = [
        ("example.org/client-a/app", 2),
        ("example.org/client-b/app", 1),
        ("nowhere/client-c/app", 1),
        ("~/work/app", 1),
    ];
    assert_eq!(names(&place), expected.map(|(name, sessions)| (name.to_owned(), sessions)));
    let named = &[&*talk(&place, "named", &again), "--namespace", "ours"];
    enqueue(&place, named);
    assert!(names(&place).contains(&("ours".to_owned(), 1)), "a name that is given wins");
}

#[test]
fn names_that_differ_only_by_case_are_one_on_a_host_that_says_so_and_a_warning_elsewhere() {
    let place = with_queue();
    for (name, url) in [
        ("one", "git@github.com:Dev/Roofs.git"),
        ("two", "https://GitHub.com/dev/roofs"),
        ("three", "git@example.org:Dev/roofs.git"),
        ("four", "git@example.org:dev/roofs.git"),
    ] {
        enqueue(&place, &[&talk(&place, name, &clone(&place, name, url))]);
    }
    let expected =
        [("example.org/Dev/roofs", 1), ("example.org/dev/roofs", 1), ("github.com/Dev/Roofs", 2)];
    assert_eq!(names(&place), expected.map(|(name, sessions)| (name.to_owned(), sessions)));
    let talk = talk(&place, "named", &place.path("one"));
    for (name, warns) in [("App", false), ("app", true), ("app", false)] {
        let told = place.run(&["enqueue", &talk, "--namespace", name]).stderr;
        assert_eq!(told.contains("`app` is a new namespace, not `App`"), warns, "{name}: {told}");
    }
    let told = place.run(&["doctor"]).stdout;
    assert!(told.contains("annalist namespace move App app"), "{told}");
}

#[test]
fn a_folder_that_the_store_does_not_know_shows_all_namespaces() {
    let place = Place::with_examples();
    for command in [&["open", "--json"][..], &["search", "queue", "--json"]] {
        let all = place.json(&[command, &["--all"]].concat());
        assert!(all.as_array().is_some_and(|it| it.len() > 1), "{all}");
        assert_eq!(place.json(command), all, "{command:?}");
    }
    let told = place.run(&["search", "queue"]).stderr;
    assert!(told.contains("no known project"), "{told}");
}

#[test]
fn a_namespace_that_is_misspelt_is_told_with_the_nearest_one() {
    let place = Place::with_examples();
    for command in [
        &["open"][..],
        &["search", "queue"],
        &["week"],
        &["consolidate"],
        &["consolidate", "log"],
        &["memory", "list"],
        &["memory", "at", "2026-11-01"],
        &["memory", "review"],
        &["records"],
        &["token", "new", "laptop", "--can", "read"],
    ] {
        let told = place.run(&[command, &["--namespace", "home/dev/legder"]].concat()).stderr;
        let note = "no namespace `home/dev/legder`; nearest: `home/dev/ledger`";
        assert!(told.contains(note), "{command:?}: {told}");
        assert!(!told.contains("no records in"), "{command:?}: {told}");
        if command[0] != "token" {
            let told = place.run(&[command, &["--namespace", "home/dev/ledger"]].concat()).stderr;
            assert!(!told.contains("no namespace"), "{command:?}: {told}");
        }
    }
}

#[test]
fn a_name_that_a_project_used_stays_until_a_person_moves_it() {
    let place = with_queue();
    let folder = clone(&place, "roofs", "git@example.org:dev/roofs.git");
    let (one, src) = (talk(&place, "one", &folder), talk(&place, "src", &folder.join("src")));
    // As an older version named them, or a person.
    let jobs = enqueue(&place, &[&one, "--namespace", "roofs"])
        + enqueue(&place, &[&src, "--namespace", "src"]);
    assert!(jobs > 0);
    assert_eq!(enqueue(&place, &[&one, &src]), 0);
    let store = format!("sqlite:{}", place.database().display());
    for command in [&["open"][..], &["search", "port"], &["week"]] {
        let mut command = place.command(command);
        let output = command.env("ANNALIST__STORE__URL", &store).current_dir(&folder).output();
        let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(!stderr.contains("error:"), "{stderr}");
    }
    let expected = |all: &[(&str, u64)]| {
        let owned: Vec<_> = all.iter().map(|(name, many)| ((*name).to_owned(), *many)).collect();
        assert_eq!(names(&place), owned);
    };
    expected(&[("roofs", 1), ("src", 1)]);
    enqueue(&place, &[&talk(&place, "next", &folder)]);
    expected(&[("roofs", 2), ("src", 1)]);
    let name = "example.org/dev/roofs";
    for old in ["roofs", "src"] {
        assert_eq!(place.run(&["namespace", "move", old, name, "--yes"]).code, 0);
    }
    enqueue(&place, &[&talk(&place, "last", &folder.join("src"))]);
    expected(&[(name, 4)]);
    let lanes = "SELECT count(DISTINCT lane) FROM jobs";
    assert_eq!(place.number(lanes), 1);
}

#[test]
fn a_repository_that_gets_a_remote_keeps_its_namespace_and_a_name_used_once_is_not_its_own() {
    let place = with_queue();
    place.write("home/tiles/.git/config", "");
    let folder = place.path("home/tiles");
    enqueue(&place, &[&talk(&place, "one", &folder)]);
    enqueue(&place, &[&talk(&place, "named", &folder), "--namespace", "tiles"]);
    enqueue(&place, &[&talk(&place, "two", &folder)]);
    clone(&place, "home/tiles", "git@example.org:dev/tiles.git");
    enqueue(&place, &[&talk(&place, "three", &folder)]);
    assert_eq!(names(&place), [("tiles".to_owned(), 1), ("~/tiles".to_owned(), 3)]);
}

#[test]
fn a_name_that_two_projects_share_stays_theirs_until_a_person_moves_it() {
    let place = with_queue();
    let (a, b) = (
        clone(&place, "a/app", "git@example.org:a/app.git"),
        clone(&place, "b/app", "git@example.org:b/app.git"),
    );
    let (one, other) = (talk(&place, "one", &a), talk(&place, "other", &b));
    enqueue(&place, &[&one, &other, "--namespace", "app"]);
    assert_eq!(enqueue(&place, &[&one, &other]), 0);
    assert_eq!(names(&place), [("app".to_owned(), 2)]);
    place.run(&["namespace", "move", "nothing", "x"]).refused(2, &["nothing", "namespace list"]);
    for name in ["", "  ", "a\nb"] {
        place.run(&["namespace", "move", "app", name]).refused(2, &["a name on one line"]);
    }
    assert_eq!(place.run(&["namespace", "move", "app", "example.org/a/app"]).code, 0);
    assert_eq!(names(&place), [("example.org/a/app".to_owned(), 2)]);
    assert_eq!(enqueue(&place, &[&one, &other]), 0, "what was moved is known");
    enqueue(&place, &[&talk(&place, "new", &b)]);
    assert!(names(&place).contains(&("example.org/b/app".to_owned(), 1)));
    let into = ["namespace", "move", "example.org/b/app", "example.org/a/app"];
    place.run(&into).refused(2, &["already", "--yes"]);
    let merged = place.run(&[&into[..], &["--yes"]].concat());
    let counts = ": 1 session and 0 memories joined its 2 sessions and 0 memories\n";
    let into = "merged namespace `example.org/b/app` into `example.org/a/app`";
    assert_eq!(merged.stdout, format!("{into}{counts}"), "{}", merged.stderr);
    assert_eq!(names(&place), [("example.org/a/app".to_owned(), 3)]);
    // The name that was moved leads to where it was moved to.
    enqueue(&place, &[&talk(&place, "newer", &b)]);
    assert_eq!(names(&place), [("example.org/a/app".to_owned(), 4)]);
}

#[test]
fn what_was_forgotten_under_the_old_name_stays_forgotten() {
    let place = with_queue();
    let folder = clone(&place, "roofs", "git@example.org:dev/roofs.git");
    let one = talk(&place, "one", &folder);
    enqueue(&place, &[&one, "--namespace", "roofs"]);
    assert_eq!(place.run(&["forget", "--session", "talk-one", "--yes"]).code, 0);
    assert_eq!(enqueue(&place, &[&one]), 0);
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 0);
}

fn moves_memory(place: &Place) {
    let root = env!("CARGO_MANIFEST_DIR");
    let sessions = format!("{root}/examples/sessions");
    let cassette = format!("{root}/examples/cassette");
    let replay = |namespace: &str| {
        let args = ["replay", &sessions, "--cassette", &cassette, "--json"];
        place.json(&[&args[..], &["--namespace", namespace]].concat())
    };
    replay("old");
    place.json(&["consolidate", "--json"]);
    assert_eq!(place.run(&["memory", "init"]).code, 0);
    let sync = ["memory", "sync", "--namespace"];
    assert_eq!(place.run(&[&sync[..], &["old"]].concat()).code, 0);
    let ids = |namespace: &str| {
        let all = place.json(&["memory", "list", "--json", "--namespace", namespace]);
        let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
        all.as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    let (before, files) = (ids("old"), place.files());
    assert!(!before.is_empty());
    place.json(&["namespace", "move", "old", "new", "--json"]);
    assert_eq!((ids("old"), ids("new")), (Vec::new(), before));
    let waiting = place.json(&["memory", "sync", "--namespace", "new", "--json"]);
    assert_eq!(waiting["changes"], json!([]), "the directory stays as it is: {waiting}");
    let markdown = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
        files.into_iter().filter(|(path, _)| path.ends_with("md")).collect::<Vec<_>>()
    };
    assert_eq!(markdown(place.files()), markdown(files));
    let counts =
        || ["sessions", "runs"].map(|it| place.number(&format!("SELECT count(*) FROM {it}")));
    let known = counts();
    replay("new");
    assert_eq!(counts(), known, "nothing is read or asked about twice");
    let log = place.json(&["consolidate", "log", "--json"]);
    assert!(log.as_array().unwrap().iter().all(|it| it["namespace"] == "new"), "{log}");
    let plan = log[0]["plan"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["consolidate", "--undo", &plan]).code, 0, "plans can be undone");
    assert_eq!(place.run(&["consolidate", "--redo", &plan]).code, 0);
}

#[test]
fn memory_keeps_its_ids_its_plans_and_its_directory_when_its_namespace_moves() {
    moves_memory(&Place::new());
}

#[test]
fn a_namespace_moves_on_a_server_as_well() {
    if let Some(place) = Place::new().on_server() {
        moves_memory(&place);
    }
}

#[test]
fn a_session_is_named_by_its_clients_id_or_the_beginning_of_it_everywhere() {
    let place = Place::with_examples();
    let native = place.sql().query_row(
        "SELECT s.native_id FROM sessions s JOIN runs r ON r.session_no = s.no
            JOIN records c ON c.run_no = r.no WHERE s.format = 'claude-code' LIMIT 1",
        [],
        |row| row.get::<_, String>(0),
    );
    let native = native.unwrap();
    let query = format!("SELECT lower(hex(id)) FROM sessions WHERE native_id = '{native}'");
    let own: String = place.sql().query_row(&query, [], |row| row.get(0)).unwrap();
    for command in [
        &["records", "--json"][..],
        &["records", "cards", "--json"],
        &["search", "--all", "--json"],
        &["jobs", "--json"],
        &["card", "--format", "json"],
        &["dialog", "--json"],
        &["conversation", "--json"],
        &["forget", "--dry-run", "--json"],
    ] {
        let with = |id: &str| place.json(&[command, &["--session", id]].concat());
        let told = with(&own);
        for id in [&own[..12], &native, &native[..native.len() - 2]] {
            assert_eq!(with(id), told, "{command:?} {id}");
        }
        let unknown = place.run(&[command, &["--session", "nobody"]].concat());
        unknown.refused(2, &["no session begins with `nobody`"]);
    }
}

#[test]
fn sessions_without_a_time_are_left_out_by_since_counted_and_let_in_by_a_flag() {
    let place = with_queue();
    place.write("notes.txt", "user: Which port is it?\nassistant: It is port 8443.\n");
    let read = |more: &[&str]| {
        let args = ["replay", "notes.txt", "--dry-run", "--json"];
        let totals = place.json(&[&args[..], more].concat());
        ["sessions", "sessions_undated"].map(|it| totals[it].as_u64().unwrap())
    };
    assert_eq!(read(&[]), [1, 0]);
    assert_eq!(read(&["--since", "2026-11"]), [0, 1]);
    assert_eq!(read(&["--since", "7d", "--undated"]), [1, 0]);
}

#[test]
fn a_conversation_is_read_whole_under_another_name_too() {
    let place = with_queue();
    let one = talk(&place, "one", &clone(&place, "roofs", "git@example.org:dev/roofs.git"));
    let first = enqueue(&place, &[&one]);
    assert!(first > 0);
    assert_eq!(enqueue(&place, &[&one, "--namespace", "ours"]), first);
}

#[test]
fn a_session_without_a_folder_belongs_to_the_project_that_its_place_names() {
    let place = with_queue();
    let chat = json!({"sessionId": "v", "requesterUsername": "u", "requests": [
        {"requestId": "r", "message": {"text": "Which port does the tile server listen on?"}}]});
    let gemini = json!({"sessionId": "g", "projectHash": "h", "messages": [
        {"id": "1", "type": "user", "content": "Which port does the tile server listen on?"}]});
    let markdown = "<!-- Generated by SpecStory -->\n\n<!-- Claude Code Session 1 (2026-11-20) -->\n\n\
        _**User**_\n\nWhich port does the tile server listen on?\n";
    let folder = json!({"folder": "file:///nowhere/client-a/app"}).to_string();
    place.write("store/1f/workspace.json", folder);
    place.write("tmp/app/.project_root", "/nowhere/client-b/app\n");
    place.write("store/1f/chatSessions/v.json", chat.to_string());
    place.write("tmp/app/chats/session-g.json", gemini.to_string());
    clone(&place, "client-c/app", "git@example.org:client-c/app.git");
    place.write("client-c/app/.specstory/history/a.md", markdown);
    for path in ["store", "client-c/app/.specstory"] {
        enqueue(&place, &[&place.path(path).display().to_string()]);
    }
    enqueue_in(&place, "tmp/app/chats", "session-g.json");
    let mut found: Vec<_> = names(&place).into_iter().map(|(name, _)| name).collect();
    found.sort();
    let expected = ["example.org/client-c/app", "nowhere/client-a/app", "nowhere/client-b/app"];
    assert_eq!(found, expected);
}

#[test]
fn sessions_that_begin_alike_are_told_apart_by_the_names_of_their_files() {
    let place = with_queue();
    let line = |role: &str, text: &str| {
        json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}}).to_string()
    };
    for (name, answer) in [("one", "It is port 8443."), ("two", "It is port 9000 now.")] {
        let text = [line("user", "Which port is it?"), line("assistant", answer)].join("\n");
        place.write(&format!("agent-transcripts/{name}/{name}.jsonl"), text + "\n");
    }
    enqueue(&place, &[&place.path("agent-transcripts").display().to_string()]);
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 2);
    let copied = "SELECT count(*) FROM entries WHERE skip IS NOT NULL";
    assert_eq!(place.number(copied), 0, "no prompt is taken for a copy");
    enqueue_in(&place, "agent-transcripts/one", "one.jsonl");
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 2, "a relative path is the same");
}

#[test]
fn the_prompt_of_a_sub_agent_whose_file_is_in_its_folder_is_not_a_persons() {
    let place = with_queue();
    let line = |role: &str, text: &str| {
        json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}}).to_string()
    };
    let talk =
        |asked: &str| [line("user", asked), line("assistant", "Port 8443.")].join("\n") + "\n";
    place.write("agent-transcripts/one/one.jsonl", talk("Which port is it?"));
    place.write("agent-transcripts/one/subagents/two.jsonl", talk("Look for the port."));
    enqueue(&place, &["agent-transcripts"]);
    let count = |sql: &str| place.number(&format!("SELECT count(*) FROM {sql}"));
    assert_eq!(count("entries WHERE speaker = 'person'"), 1);
    assert_eq!(count("entries WHERE speaker = 'client' AND branch = 'sidechain'"), 1);
    assert_eq!(count("sessions WHERE native_id = 'two' AND parent = 'one'"), 1);
}

#[test]
fn a_conversation_whose_file_gets_a_name_or_is_copied_is_still_one() {
    let place = with_queue();
    let line = json!({"role": "user", "message": {"content": "Which port is it?"}});
    place.write("one.jsonl", format!("{line}\n"));
    enqueue(&place, &["one.jsonl"]);
    place.write("agent-transcripts/one/one.jsonl", format!("{line}\n"));
    std::fs::remove_file(place.path("one.jsonl")).unwrap();
    enqueue(&place, &["agent-transcripts"]);
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 1);
    let steps = json!({"trajectory": [], "history": [
        {"role": "system", "content": "rules"}, {"role": "user", "content": "Fix the tiles."}]});
    for name in ["runs/a.traj", "runs/b.traj"] {
        place.write(name, steps.to_string());
    }
    enqueue(&place, &["runs"]);
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 2);
}

#[test]
fn a_dot_is_the_current_folder_where_one_is_read_or_written_and_never_a_name() {
    let mut place = with_queue();
    let file = talk(&place, "a", Path::new("/nowhere/app"));
    for args in [
        &["week"][..],
        &["jobs"],
        &["memory", "list"],
        &["memory", "sync"],
        &["memory", "review"],
        &["memory", "reflect"],
        &["consolidate"],
        &["forget"],
    ] {
        let args = [args, &["--namespace", "."]].concat();
        place.run(&args).refused(2, &["expected a name on one line"]);
    }
    assert_eq!(place.run(&["replay", &file, "--namespace", ".", "--dry-run"]).code, 0);
    enqueue(&place, &[&file, "--namespace", "."]);
    place.run(&["token", "new", "laptop", "--namespace", ".", "--can", "read"]);
    let tokens = place.json(&["token", "list", "--json"]);
    let here = tokens[0]["namespace"].as_str().unwrap().to_owned();
    assert_eq!(names(&place), vec![(here.clone(), 1)]);
    for command in [&["records"][..], &["records", "export"], &["records", "cards"]] {
        let told = place.run(&[command, &["--namespace", "."]].concat()).stderr;
        assert!(!told.contains("no namespace"), "{command:?}: {told}");
    }
    place.set("ANNALIST__NAMESPACE", "named");
    let again = talk(&place, "b", Path::new("/nowhere/app"));
    enqueue(&place, &[&again, "--namespace", "."]);
    assert_eq!(names(&place), vec![("named".to_owned(), 1), (here, 1)]);
    place.set("ANNALIST__NAMESPACE", ".");
    place.run(&["enqueue", &file]).refused(2, &["expected a name on one line"]);
}

#[test]
fn a_namespace_in_the_home_may_be_typed_as_the_shell_expands_it() {
    let place = with_queue();
    let home = place.path("home").display().to_string();
    let file = talk(&place, "a", Path::new("/nowhere/app"));
    enqueue(&place, &[&file, "--namespace", &format!("{home}/proj/roofs/")]);
    assert_eq!(names(&place), vec![("~/proj/roofs".to_owned(), 1)]);
    let typed = format!("{home}/proj/roofs");
    let told = place.run(&["records", "--namespace", &typed]).stderr;
    assert!(!told.contains("no namespace"), "{told}");
    assert_eq!(place.run(&["namespace", "move", &typed, "roofs"]).code, 0);
    assert_eq!(names(&place), vec![("roofs".to_owned(), 1)]);
}
