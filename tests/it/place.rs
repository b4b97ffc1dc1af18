//! A folder with its own home, in which the binary is run.

use super::server::{self, Schema};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The binary.
pub(crate) const ANNALIST: &str = env!("CARGO_BIN_EXE_annalist");

/// A temporary folder with settings for the runs in it.
pub(crate) struct Place {
    folder: TempDir,
    env: BTreeMap<String, String>,
    /// Where the store is, if not in the folder.
    schema: Option<Schema>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code; -1 if a signal ended it.
    pub(crate) code: i32,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it said.
    pub(crate) stderr: String,
}

/// A run under way; killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder, env: BTreeMap::new(), schema: None };
        fs::create_dir_all(place.path("home")).unwrap();
        // The folder is a project, with a store of its own.
        fs::create_dir_all(place.path(".annalist")).unwrap();
        place
    }

    /// Settings for an endpoint, with short slices, in this folder from now on.
    pub(crate) fn with_endpoint(url: &str) -> Place {
        let mut place = Place::new();
        place.set("ANNALIST__MODEL__BASE_URL", url);
        place.set("ANNALIST__MODEL__MODEL", "stub-1");
        place.set("ANNALIST__SLICE__TOKENS", "400");
        place.set("ANNALIST__SLICE__TOOL_TOKENS", "100");
        place
    }

    /// With the records of the shipped sessions, from their recorded answers; they are replayed once.
    pub(crate) fn with_examples() -> Place {
        static REPLAYED: LazyLock<Place> = LazyLock::new(|| {
            let (place, root) = (Place::new(), env!("CARGO_MANIFEST_DIR"));
            let (sessions, cassette) =
                (format!("{root}/examples/sessions"), format!("{root}/examples/cassette"));
            place.json(&["replay", &sessions, "--cassette", &cassette, "--json"]);
            place
        });
        REPLAYED.copied()
    }

    /// A new folder with the same files, settings and permissions; without a store on a server.
    pub(crate) fn copied(&self) -> Place {
        assert!(self.schema.is_none());
        let folder = tempfile::tempdir().unwrap();
        copy(self.folder.path(), folder.path());
        Place { folder, env: self.env.clone(), schema: None }
    }

    /// The folder under another name.
    pub(crate) fn moved(self) -> Place {
        let moved = self.copied();
        drop(self);
        moved
    }

    /// With the store on a PostgreSQL server from now on, where there is one.
    pub(crate) fn on_server(mut self) -> Option<Place> {
        let schema = Schema::new(server::url()?);
        self.set(
            "ANNALIST__STORE__URL",
            &format!("{}&application_name={}", schema.url(), schema.name),
        );
        self.schema = Some(schema);
        Some(self)
    }

    /// Ends every connection to the server that is not ours.
    pub(crate) fn cut_connections(&self) {
        let schema = self.schema.as_ref().unwrap();
        schema.run(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'",
            schema.name
        ));
    }

    /// Waits until the server knows that who was killed is gone, and has done or undone its last work.
    pub(crate) fn until_nobody_writes(&self) {
        let schema = self.schema.as_ref().unwrap();
        let others = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'",
            schema.name
        );
        while schema.number(&others) > 0 {}
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.env.remove(name);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "an input of a test need not be atomic")]
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path(".annalist/annalist.db")
    }

    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.database()).unwrap()
    }

    /// The one number that a query gives.
    pub(crate) fn number(&self, query: &str) -> i64 {
        if let Some(schema) = &self.schema {
            return schema.number(query);
        }
        self.sql().query_row(query, [], |row| row.get(0)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.program(ANNALIST, args)
    }

    /// Any program, as the binary is run.
    pub(crate) fn program(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(args).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.path("home")).env("XDG_CONFIG_HOME", self.path("home/xdg"));
        // No test calls a model, or looks for one on this machine, that it did not name.
        command.env("ANNALIST__CONSOLIDATE__MODEL", "");
        command.env("NO_COLOR", "1").env("TZ", "UTC0").envs(&self.env);
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let output = self.command(args).stdin(Stdio::null()).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must end well, and reads what it printed.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.json_with(0, args)
    }

    /// As [`Place::json`], with another exit code.
    #[track_caller]
    pub(crate) fn json_with(&self, code: i32, args: &[&str]) -> Value {
        let output = self.run(args);
        assert_eq!(output.code, code, "{args:?}: {}", output.stderr);
        output.json()
    }

    /// Every record, one a line, without the times of the runs.
    #[track_caller]
    pub(crate) fn export(&self) -> Vec<String> {
        let output = self.run(&["records", "export"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let mut lines: Vec<String> = output.stdout.lines().map(timeless).collect();
        lines.sort();
        lines
    }

    /// Starts a command.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_program(self.command(args))
    }

    /// Starts any program.
    pub(crate) fn start_program(&self, mut command: Command) -> Running {
        let (stdout, stderr) = (self.path("stdout"), self.path("stderr"));
        command.stdin(Stdio::null()).stdout(File::create(&stdout).unwrap());
        let child = command.stderr(File::create(&stderr).unwrap()).spawn().unwrap();
        Running { child, stdout, stderr }
    }

    /// Every file under the folder, its bytes.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        walk(self.folder.path(), &mut |path| found.push((path.to_owned(), read(path))));
        found
    }
}

/// A record without what differs from run to run.
pub(crate) fn timeless(line: &str) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap();
    record["extracted_at"] = Value::Null;
    record.to_string()
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

/// Copies what is in folder `from` to folder `to`, with permissions.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir(&copied).unwrap();
            copy(&path, &copied);
            fs::set_permissions(&copied, entry.metadata().unwrap().permissions()).unwrap();
        } else {
            fs::copy(&path, &copied).unwrap();
        }
    }
}

/// Every file under `folder`, in order.
pub(crate) fn walk(folder: &Path, each: &mut impl FnMut(&Path)) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() { walk(&path, each) } else { each(&path) }
    }
}

impl Output {
    /// What it printed; nothing else stands on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON: {error}: {}\n{}", self.stdout, self.stderr))
    }

    /// The one line on stderr that begins with `error:`, after the check that it holds `words`.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        let lines: Vec<&str> = self.stderr.lines().collect();
        let errors = lines.iter().filter(|line| line.starts_with("error:")).count();
        assert_eq!(errors, 1, "one clear line: {}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

impl Running {
    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        String::from_utf8(read(&self.stderr)).unwrap()
    }

    /// How much it held in memory at most, in KiB, where the system tells.
    pub(crate) fn peak_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        peak.split_whitespace().next()?.parse().ok()
    }

    /// Ends it as a loss of power would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn wait(mut self) -> Output {
        let status = self.child.wait().unwrap();
        Output {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(read(&self.stdout)).unwrap(),
            stderr: String::from_utf8(read(&self.stderr)).unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of the coverage is the number of entries.
#[track_caller]
pub(crate) fn balanced(totals: &Value) {
    let coverage = totals["coverage"].as_object().unwrap();
    let sum: u64 = coverage.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(Some(sum), totals["entries"].as_u64(), "{totals}");
}

/// A number of the totals, by its pointer.
#[track_caller]
pub(crate) fn count(totals: &Value, pointer: &str) -> u64 {
    totals.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {totals}"))
}

/// Records of all kinds, quarantined ones not.
pub(crate) fn records(totals: &Value) -> u64 {
    ["decisions", "discussions", "attempts", "requests"]
        .iter()
        .map(|kind| count(totals, &format!("/records/{kind}")))
        .sum()
}
