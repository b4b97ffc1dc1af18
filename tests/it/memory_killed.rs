//! `memory sync` killed at every effect it has on the disk, and run again: it comes to what one undisturbed run comes
//! to, at once, and nothing that a person wrote is lost.

use super::place::{Place, read, walk};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const DIR: &str = ".claude/memory";
const SYNC: [&str; 5] = ["memory", "sync", "--namespace", "home/dev/ledger", "--json"];
/// What reaches the disk, and which of them a process is killed at: all syncs, all moves into place, and every tenth
/// page of the store. Counted for each thread by itself.
const EFFECTS: [(&str, usize); 3] = [
    ("fsync,fdatasync", 1),
    ("rename,renameat,renameat2,unlink,unlinkat,ftruncate", 1),
    ("pwrite64", 10),
];
/// More than a sync of this size has.
const EFFECTS_MAX: usize = 400;

/// Records that wait, and a directory in which a person wrote.
fn begun() -> Place {
    let place = Place::with_examples();
    assert_eq!(place.run(&["memory", "init", "--all"]).code, 0);
    let path = format!("{DIR}/patterns.md");
    let text = String::from_utf8(read(&place.path(&path))).unwrap();
    place.write(&path, format!("{text}\n<private>mine alone</private>\n\n## Mine\n\n- kept\r\n"));
    place
}

/// Everything of the directory, leftovers too.
fn files(place: &Place) -> BTreeMap<String, String> {
    let root = place.path(DIR);
    let mut files = BTreeMap::new();
    walk(&root, &mut |path| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        files.insert(name, String::from_utf8(read(path)).unwrap());
    });
    files
}

fn believed(place: &Place) -> Value {
    place.json(&["memory", "list", "--all", "--namespace", "home/dev/ledger", "--json"])
}

/// Runs it until its `effect`th effect, and kills it there; none where that cannot be done on this machine, else
/// whether it got so far.
fn killed_at(place: &Place, (calls, effect): (&str, usize)) -> Option<bool> {
    let inject = format!("inject={calls}:signal=KILL:when={effect}");
    let own = place.command(&SYNC);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(place.path("trace")).args(["-e", &inject]);
    command.arg(own.get_program()).args(own.get_args()).current_dir(place.path(""));
    command.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.ok()?;
    let traced = String::from_utf8_lossy(&read(&place.path("trace"))).contains("SIGKILL");
    match (status.success(), traced) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        // It is there and may not trace.
        (false, false) => None,
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "says why nothing was tested")]
fn killed_at_any_effect_a_sync_goes_on_at_once() {
    let begun = begun();
    let undisturbed = begun.copied();
    undisturbed.json(&SYNC);
    let (expected, memories) = (files(&undisturbed), believed(&undisturbed));
    for (calls, step) in EFFECTS {
        let mut kills = 0;
        for effect in (1..EFFECTS_MAX).step_by(step) {
            let place = begun.copied();
            let Some(got_so_far) = killed_at(&place, (calls, effect)) else {
                eprintln!("not tested: nothing here can kill a process at a system call (strace)");
                return;
            };
            if !got_so_far {
                assert_eq!(files(&place), expected);
                break;
            }
            kills += 1;
            let again = place.run(&SYNC);
            let at = format!("{calls} {effect}");
            assert_eq!(again.code, 0, "{at}: {}", again.stderr);
            let now = files(&place);
            let names =
                |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&now), names(&expected), "{at}");
            for (name, text) in &expected {
                assert_eq!(&now[name], text, "{at}: {name}");
            }
            assert_eq!(believed(&place), memories, "{at}");
            assert_eq!(place.json(&SYNC)["changes"], json!([]), "{at}");
            let log = place.json(&["consolidate", "log", "--json"]);
            assert_eq!(log.as_array().unwrap().len(), 1, "{at}: {log}");
        }
        assert!((3..EFFECTS_MAX / step).contains(&kills), "{calls}: {kills}");
    }
}
