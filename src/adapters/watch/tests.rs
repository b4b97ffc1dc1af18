//! Tests with real folders: reading each reported file always gives its current text.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Timeout for expected reports, which take a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(60);
const OPTIONS: Options = Options {
    quiet: Duration::from_millis(100),
    busy_max: Duration::from_secs(30),
    poll: Duration::from_millis(10),
};

/// Temporary folder with watched roots, and a reader's knowledge of them.
struct Followed {
    place: TempDir,
    watch: Watch,
    /// Contents of each file when it was last reported, by relative path.
    read: BTreeMap<String, String>,
    /// Files reported since the last step.
    told: BTreeSet<String>,
    problems: Vec<String>,
}

impl Followed {
    /// Watches `roots` in an empty folder after running `prepare` there.
    fn with(roots: &[&str], options: Options, prepare: impl FnOnce(&Path)) -> Followed {
        let place = tempfile::tempdir().unwrap();
        prepare(place.path());
        let roots: Vec<_> = roots.iter().map(|root| place.path().join(root)).collect();
        let watch = Watch::start(&roots, options);
        let (read, told, problems) = Default::default();
        Followed { place, watch, read, told, problems }
    }

    /// Takes the next batch and reads its files.
    async fn next(&mut self) {
        let batch = self.watch.next().await.unwrap();
        self.take(batch);
    }

    fn take(&mut self, batch: Batch) {
        let below = |path: &Path| path.strip_prefix(self.place.path()).unwrap().to_owned();
        for file in batch.files {
            let name = below(&file.path).display().to_string();
            self.read.insert(name.clone(), fs::read_to_string(&file.path).expect("it is there"));
            self.told.insert(name);
        }
        let problems = batch.problems.iter().map(|(path, _)| below(path).display().to_string());
        self.problems.extend(problems);
    }

    /// Waits until the reader has `files` with these texts; returns the files reported.
    async fn until(&mut self, files: &[(&str, &str)]) -> Vec<String> {
        let known = |read: &BTreeMap<String, String>| {
            files.iter().all(|(name, text)| read.get(*name).is_some_and(|known| known == text))
        };
        let wait = async {
            while !known(&self.read) {
                self.next().await;
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("waited for {files:?}, but the reader knows {:?}", self.read);
        }
        std::mem::take(&mut self.told).into_iter().collect()
    }

    /// Changes files and checks that exactly `files` are reported, with these texts.
    async fn step(&mut self, what: impl FnOnce(&Path), files: &[(&str, &str)]) {
        what(self.place.path());
        let told = self.until(files).await;
        assert_eq!(told, files.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    /// Changes files and checks that `files` are reported, any number of times.
    async fn comes(&mut self, what: impl FnOnce(&Path), files: &[(&str, &str)]) {
        what(self.place.path());
        self.until(files).await;
    }
}

/// Writes a file, creating its folders.
fn write(path: impl AsRef<Path>, text: &str) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Writes a file with a modification time an hour ago.
fn write_old(path: impl AsRef<Path>, text: &str) {
    write(&path, text);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let changed = file.metadata().unwrap().modified().unwrap();
    file.set_modified(changed - Duration::from_secs(3_600)).unwrap();
}

fn append(path: impl AsRef<Path>, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn rename(place: &Path, from: &str, to: &str) {
    fs::rename(place.join(from), place.join(to)).unwrap();
}

#[tokio::test]
async fn what_happens_to_files_is_told() {
    let mut here = Followed::with(&["in"], OPTIONS, |at| {
        write_old(at.join("in/a"), "1");
        write_old(at.join("in/sub/b"), "2");
        write_old(at.join("in/node_modules/c"), "no");
        write_old(at.join("out/t/u"), "3");
    });
    here.step(|_| {}, &[("in/a", "1"), ("in/sub/b", "2")]).await;
    here.step(|at| write(at.join("in/n"), "new"), &[("in/n", "new")]).await;
    here.step(|at| append(at.join("in/a"), "+"), &[("in/a", "1+")]).await;
    here.step(|at| rename(at, "in/sub/b", "in/sub/c"), &[("in/sub/c", "2")]).await;
    here.step(|at| rename(at, "in/sub/c", "in/d"), &[("in/d", "2")]).await;
    let rotate = |at: &Path| {
        rename(at, "in/a", "in/a.1");
        write(at.join("in/a"), "x");
    };
    here.step(rotate, &[("in/a", "x"), ("in/a.1", "1+")]).await;
    here.step(|at| write(at.join("in/a"), "y"), &[("in/a", "y")]).await;
    here.step(|at| write(at.join("in/a"), ""), &[("in/a", "")]).await;
    here.step(|at| write(at.join("in/p/q/r"), "deep"), &[("in/p/q/r", "deep")]).await;
    here.step(|at| append(at.join("in/p/q/r"), "er"), &[("in/p/q/r", "deeper")]).await;
    here.step(|at| rename(at, "out/t", "in/t"), &[("in/t/u", "3")]).await;
    here.step(|at| rename(at, "in/t", "in/s"), &[("in/s/u", "3")]).await;
    here.step(|at| append(at.join("in/s/u"), "+"), &[("in/s/u", "3+")]).await;
    let again = |at: &Path| {
        fs::remove_dir_all(at.join("in/p")).unwrap();
        write(at.join("in/p/q/r"), "again");
    };
    here.step(again, &[("in/p/q/r", "again")]).await;
    here.step(|at| append(at.join("in/p/q/r"), "!"), &[("in/p/q/r", "again!")]).await;
    let passed_over = |at: &Path| {
        write(at.join("in/.git/x"), "no");
        write(at.join("in/gone"), "no");
        fs::remove_file(at.join("in/gone")).unwrap();
        fs::remove_file(at.join("in/d")).unwrap();
        write(at.join("in/last"), "yes");
    };
    here.step(passed_over, &[("in/last", "yes")]).await;
    assert!(here.problems.is_empty(), "{:?}", here.problems);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_waited_for_and_one_that_goes_may_come_back() {
    let mut here = Followed::with(&["home/.agent/log"], OPTIONS, |_| {});
    assert!(here.watch.next().await.unwrap().files.is_empty(), "the first batch comes at once");
    let file = "home/.agent/log/a/s";
    here.comes(|at| write(at.join(file), "one"), &[(file, "one")]).await;
    for text in ["two", "three"] {
        let again = |at: &Path| {
            fs::remove_dir_all(at.join("home")).unwrap();
            write(at.join(file), text);
        };
        here.comes(again, &[(file, text)]).await;
        let longer = format!("{text}+");
        here.comes(|at| append(at.join(file), "+"), &[(file, &longer)]).await;
    }
    // The moved folder is no longer watched; its replacement is.
    rename(here.place.path(), "home/.agent/log", "home/away");
    here.comes(|at| write(at.join(file), "four"), &[(file, "four")]).await;
    assert!(here.problems.is_empty(), "{:?}", here.problems);
}

#[cfg(unix)]
#[tokio::test]
async fn a_linked_folder_is_followed_if_it_is_named_and_a_linked_file_wherever_it_leads() {
    use std::os::unix::fs::symlink;
    let mut here = Followed::with(&["root"], OPTIONS, |at| {
        write_old(at.join("one/a"), "1");
        write_old(at.join("two/b"), "2");
        write_old(at.join("elsewhere/f"), "3");
        symlink("one", at.join("root")).unwrap();
        symlink("../elsewhere/f", at.join("one/link")).unwrap();
        symlink("../elsewhere", at.join("one/folder")).unwrap();
        symlink("..", at.join("one/up")).unwrap();
    });
    here.step(|_| {}, &[("root/a", "1"), ("root/link", "3")]).await;
    here.step(|at| append(at.join("one/a"), "+"), &[("root/a", "1+")]).await;
    here.step(|at| append(at.join("elsewhere/f"), "+"), &[("root/link", "3+")]).await;
    let point = |at: &Path| {
        fs::remove_file(at.join("root")).unwrap();
        symlink("two", at.join("root")).unwrap();
    };
    here.step(point, &[("root/b", "2")]).await;
    here.step(|at| append(at.join("two/b"), "+"), &[("root/b", "2+")]).await;
}

#[tokio::test]
async fn a_named_file_is_followed_and_what_two_roots_hold_is_told_once() {
    let roots = ["in/x.jsonl", "in/target/y", "in"];
    let mut here = Followed::with(&roots, OPTIONS, |at| {
        write_old(at.join("in/x.jsonl"), "1");
        write_old(at.join("in/target/y/z"), "2");
        write_old(at.join("in/target/not"), "no");
    });
    let batch = here.watch.next().await.unwrap();
    let named: Vec<_> = batch.files.iter().map(|file| file.named).collect();
    assert_eq!(named, [false, true], "in order of their paths");
    here.take(batch);
    here.step(|_| {}, &[("in/target/y/z", "2"), ("in/x.jsonl", "1")]).await;
    let change = |at: &Path| {
        rename(at, "in/x.jsonl", "in/x.jsonl.1");
        write(at.join("in/x.jsonl"), "new");
        append(at.join("in/target/y/z"), "+");
    };
    let files = [("in/target/y/z", "2+"), ("in/x.jsonl", "new"), ("in/x.jsonl.1", "1")];
    here.comes(change, &files).await;
}

#[tokio::test]
async fn a_file_that_grows_without_rest_is_told_while_it_grows() {
    let (quiet, busy_max) = (Duration::from_millis(300), Duration::from_millis(500));
    let options = Options { quiet, busy_max, ..OPTIONS };
    let mut here = Followed::with(&["in"], options, |at| write_old(at.join("in/a"), ""));
    here.next().await;
    let (path, stop) = (here.place.path().join("in/a"), CancellationToken::new());
    let stopped = stop.clone();
    let writer = std::thread::spawn(move || {
        while !stopped.is_cancelled() {
            append(&path, "x");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    for _ in 0..2 {
        let told = tokio::time::timeout(PATIENCE, here.next()).await;
        assert!(told.is_ok() && !writer.is_finished());
    }
    stop.cancel();
    writer.join().unwrap();
    let whole = fs::read_to_string(here.place.path().join("in/a")).unwrap();
    here.until(&[("in/a", &whole)]).await;
}

#[tokio::test]
async fn a_file_that_may_be_in_the_middle_of_a_change_at_the_start_is_told_again() {
    let mut here = Followed::with(&["in"], OPTIONS, |at| {
        write(at.join("in/new"), "1");
        write_old(at.join("in/old"), "2");
    });
    here.step(|_| {}, &[("in/new", "1"), ("in/old", "2")]).await;
    tokio::time::timeout(PATIENCE, here.next()).await.unwrap();
    assert_eq!(here.told.into_iter().collect::<Vec<_>>(), ["in/new"]);
}

#[tokio::test]
async fn nothing_is_lost_if_waiting_is_broken_off() {
    let mut here = Followed::with(&["in"], OPTIONS, |at| write(at.join("in/0"), "0"));
    let count = 40;
    for n in 1..=count {
        write(here.place.path().join(format!("in/{n}")), "x");
        let impatient = Duration::from_millis(n % 7);
        if let Ok(batch) = tokio::time::timeout(impatient, here.watch.next()).await {
            here.take(batch.unwrap());
        }
    }
    let names: Vec<_> = (1..=count).map(|n| format!("in/{n}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    here.until(&files).await;
}

#[cfg(unix)]
#[tokio::test]
async fn what_cannot_be_looked_at_is_told_once_and_ends_nothing() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mut here = Followed::with(&["in", "loop"], OPTIONS, |at| {
        symlink("loop", at.join("loop")).unwrap();
        write_old(at.join("in/shut/a"), "1");
        fs::set_permissions(at.join("in/shut"), PermissionsExt::from_mode(0o000)).unwrap();
    });
    here.comes(|at| write(at.join("in/b"), "2"), &[("in/b", "2")]).await;
    // Root can read it regardless.
    let is_shut = fs::read_dir(here.place.path().join("in/shut")).is_err();
    let expected: &[&str] = if is_shut { &["loop", "in/shut"] } else { &["loop"] };
    assert_eq!(here.problems, expected);
    let open = |at: &Path| {
        fs::set_permissions(at.join("in/shut"), PermissionsExt::from_mode(0o700)).unwrap();
    };
    here.comes(open, &[("in/shut/a", "1")]).await;
    here.comes(|at| write(at.join("in/shut/b"), "3"), &[("in/shut/b", "3")]).await;
    assert_eq!(here.problems, expected);
}

#[tokio::test]
async fn dropping_it_ends_its_thread() {
    let place = tempfile::tempdir().unwrap();
    let (reports, batches) = mpsc::channel(1);
    let held = reports.downgrade();
    let scanner = Scanner::new(&[place.path().to_owned()], reports);
    let options = Options { poll: Duration::from_secs(86_400), ..OPTIONS };
    let mut watch = Watch { batches, thread: thread::spawn(move || follow(scanner, options)) };
    watch.next().await.unwrap();
    drop(watch);
    let ended = async {
        while held.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

#[test]
fn a_file_that_went_and_came_back_as_it_was_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let (at, away) = (place.path().join("a.txt"), place.path().join("b.away"));
    write(&at, "one");
    let (reports, _batches) = mpsc::channel(1);
    let mut scanner = Scanner::new(&[place.path().to_owned()], reports);
    let mut changed = || {
        let scan = scanner.scan().unwrap();
        scan.changed.into_iter().any(|(_, file)| file.path == at)
    };
    assert!(changed() && !changed());
    append(&at, "two");
    assert!(changed());
    fs::rename(&at, &away).unwrap();
    assert!(!changed());
    fs::rename(&away, &at).unwrap();
    assert!(changed());
}
