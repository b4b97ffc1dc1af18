//! `annalist why FILE:LINE` and `annalist why --commit`: the conversation behind a line of code.

use crate::adapters::clock;
use crate::adapters::code::{BlamedLine, CodeError, CodeTree, Commit, SHORT_DIGITS};
use crate::cli::output::{self, BOLD, DIM, Failure, GREEN, Result, YELLOW, json_row, short};
use crate::cli::settings;
use crate::domain::{Digest, Timestamp};
use crate::pipeline::{
    Certainty, Namespaces, Origin, OriginRequest, RelatedRecord, WorkingSession,
};
use crate::privacy::Gate;
use crate::rows::SearchRow;
use crate::search::Query;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

const WORDS_LETTERS: usize = 300;

#[derive(Clone, Debug)]
pub(super) enum Subject {
    Line { file: PathBuf, number: usize },
    Commit(String),
}

impl Subject {
    /// Parses `FILE:LINE`; `None` if the text is an id.
    pub(super) fn parse(text: &str) -> Result<Option<Subject>> {
        let is_file = || text.contains(['/', '.']) || Path::new(text).is_file();
        // `FILE:LINE:COLUMN` of compilers, `FILE#L42` of links.
        let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
        let linked = text.replacen("#L", ":", 1);
        let text = match linked.rsplit_once(':') {
            Some((line, column)) if is_number(column) => {
                let is_place = line.rsplit_once(':').is_some_and(|(_, line)| is_number(line));
                if is_place { line } else { &linked }
            }
            _ => text,
        };
        match text.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
            Some((file, Ok(number))) => Ok(Some(Subject::Line { file: file.into(), number })),
            Some((_, Err(_))) | None if is_file() => Err(Failure::usage(format!(
                "`{text}`: name a line, such as {}:42",
                text.split(':').next().unwrap_or(text)
            ))),
            Some((_, Err(_))) | None => Ok(None),
        }
    }
}

/// The sessions and records behind a line or a commit, as JSON.
#[derive(JsonSchema, Serialize)]
pub(crate) struct WhyCodeReport<'a> {
    /// None for a commit.
    line: Option<LineRow>,
    /// None for a line that is not committed yet.
    commit: Option<CommitRow>,
    sessions: Vec<SessionRow<'a>>,
    records: Vec<RelatedRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct LineRow {
    path: String,
    number: usize,
    text: String,
}

#[derive(JsonSchema, Serialize)]
struct CommitRow {
    id: String,
    at: Option<String>,
    subject: String,
    files: Vec<String>,
}

json_row! {
    struct SessionRow<'a> of it: &'a WorkingSession {
        id: Digest = it.held.session.id.0,
        certainty: Certainty = it.certainty,
        reasons: &'a [String] = &it.reasons,
        began: String = it.held.began.to_string(),
        ended: String = it.held.ended.to_string(),
        namespace: &'a str = &it.held.session.namespace,
        title: Option<&'a str> = it.held.session.title.as_ref().map(|title| title.as_str()),
        path: &'a str = &it.held.session.path,
    }
}

#[derive(JsonSchema, Serialize)]
struct RelatedRow<'a> {
    #[serde(flatten)]
    hit: SearchRow<'a>,
    reasons: &'a [String],
}

pub(super) async fn run(
    subject: Subject,
    limit: usize,
    as_json: bool,
    file: Option<&Path>,
) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    let (tree, line, commit) = found(subject)?;
    let gate = Gate::new(&config.pii);
    let root = tree.top().map_err(code_failure)?.unwrap_or_else(|| ".".to_owned());
    let namespaces = Namespaces { store: &store, gate: &gate };
    let namespace = match &config.namespace {
        Some(named) => named.clone(),
        None => namespaces.of_folder(&root).await?,
    };
    let shown = gate.redact(&root);
    let request = OriginRequest {
        store: &store,
        commit: &commit,
        line: line.as_ref(),
        now: clock::now(),
        namespace: &namespace,
        root: shown.as_str(),
        limit,
    };
    let origin = request.run().await?;
    let query = Query::of(&format!("{} {}", origin.names.join(" "), commit.subject));
    let report = report(&origin, &query, line, &commit, &gate);
    if as_json {
        output::json(&report)?;
    } else {
        output::line(text(&report).trim_end())?;
    }
    if !report.sessions.is_empty() || !report.records.is_empty() {
        return Ok(());
    }
    output::note(
        "no session was active then, and no record names it: `annalist replay` reads transcripts",
    );
    output::fail_if(true)
}

fn found(subject: Subject) -> Result<(CodeTree, Option<BlamedLine>, Commit)> {
    match subject {
        Subject::Line { file, number } => {
            let (tree, line) = CodeTree::blame(&file, number).map_err(code_failure)?;
            let commit = line.commit.clone();
            Ok((tree, Some(line), commit))
        }
        Subject::Commit(name) => {
            let tree = CodeTree::open(Path::new(".")).map_err(code_failure)?;
            let commit = tree.commit(&name).map_err(code_failure)?.ok_or_else(|| {
                Failure::usage(format!("no commit `{name}`: `git log` lists them"))
            })?;
            Ok((tree, None, commit))
        }
    }
}

fn code_failure(error: CodeError) -> Failure {
    match error {
        CodeError::NoRepository(path) => Failure::usage(format!(
            "{path} is not in a git repository, in whose history lines are looked up; \
             `annalist search` needs none"
        )),
        CodeError::NoLine(_) => Failure::usage(error.to_string()),
        CodeError::Git(_) | CodeError::TooSlow => Failure::failed(error.to_string()),
    }
}

fn report<'a>(
    origin: &'a Origin,
    query: &Query,
    line: Option<BlamedLine>,
    commit: &Commit,
    gate: &Gate,
) -> WhyCodeReport<'a> {
    let masked = |text: &str| gate.redact(text).as_str().to_owned();
    let line = line.map(|it| LineRow {
        path: masked(&it.path),
        number: it.number,
        text: masked(it.text.trim()),
    });
    let commit = commit.id.clone().map(|id| CommitRow {
        id,
        at: commit.authored_at.map(|at| at.to_string()),
        subject: masked(&commit.subject),
        files: commit.files.iter().map(|file| masked(file)).collect(),
    });
    let records = origin.records.iter().map(|RelatedRecord { hit, reasons, .. }| RelatedRow {
        hit: SearchRow::of(hit, query),
        reasons,
    });
    WhyCodeReport {
        line,
        commit,
        sessions: origin.sessions.iter().map(SessionRow::of).collect(),
        records: records.collect(),
    }
}

/// Formats the report for people, from the code to the quotes.
fn text(report: &WhyCodeReport<'_>) -> String {
    let mut lines = Vec::new();
    if let Some(LineRow { path, number, text }) = &report.line {
        let text = output::shorten(text, WORDS_LETTERS);
        lines.push(format!("{BOLD}line{BOLD:#}     {path}:{number}  {DIM}{text}{DIM:#}"));
    }
    match &report.commit {
        Some(CommitRow { id, at, subject, .. }) => {
            let at = at.as_deref().unwrap_or_default();
            lines.push(format!("{BOLD}commit{BOLD:#}   {id:.SHORT_DIGITS$}  {at}  {subject}"));
        }
        None => lines.push(format!("{BOLD}commit{BOLD:#}   none yet: the line is not committed")),
    }
    for it in &report.sessions {
        let style = match it.certainty {
            Certainty::Sure => GREEN,
            Certainty::Likely => BOLD,
            Certainty::Guess => YELLOW,
        };
        let title = it.title.map(|title| format!(" “{title}”")).unwrap_or_default();
        lines.push(format!(
            "{BOLD}session{BOLD:#}  {}  {style}{}{style:#}: {}",
            short(&it.id),
            it.certainty.name(),
            it.reasons.join(", ")
        ));
        let (began, ended) = (minute(&it.began), minute(&it.ended));
        lines.push(format!("         {DIM}{began} to {ended}{title}, {}{DIM:#}", it.path));
    }
    for it in &report.records {
        lines.push(String::new());
        let [id, day, kind, state, words, _] = it.hit.cells();
        let headline = it.hit.headline.unwrap_or_default();
        lines.push(format!("{BOLD}{kind}{BOLD:#}  {id}  {day}  {state}  {headline}"));
        let said = it.hit.said_by.filter(|_| !it.hit.edited);
        let said = said.map(|by| format!("{}, ", by.name())).unwrap_or_default();
        let place = it.hit.path.zip(it.hit.line).map(|(path, line)| format!("{path}:{line}, "));
        let (words, place) = (output::shorten(&words, WORDS_LETTERS), place.unwrap_or_default());
        lines.push(format!("  “{words}”"));
        lines.push(format!("  {DIM}{said}{place}{}{DIM:#}", it.reasons.join(", ")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn minute(at: &str) -> String {
    Timestamp::of_rfc3339(at).map_or_else(|| at.to_owned(), clock::local_minute)
}
