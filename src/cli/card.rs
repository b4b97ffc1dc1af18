//! `annalist card`: memory cards of conversations. Calls no model and stores nothing.

use super::output::{self, Failure, Result, counted, unreadable};
use super::session_input::{Heard, Source, StoredSession, note_private};
use super::settings;
use crate::adapters::walk::{Candidate, walk};
use crate::domain::{FINDINGS_MAX, Finding, Format, Severity};
use crate::memory_card::{Card, CardBuilder, CardCheck, CardHead, Ellipsis, checklist, yaml};
use crate::privacy::{Gate, Redacted};
use crate::transcripts::{DetectError, read_session};
use std::path::{Path, PathBuf};

const EXPECTED: &str = "a transcript, or a session as JSON: {\"messages\": […]}";
const LISTED_MAX: usize = 5;
/// Maximum size of a file of cards to check, in bytes; a card has about 3 kB.
const CARDS_BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist card session.jsonl                  seven fields, as YAML
  annalist card --format json - < session.json {\"messages\": […]}
  annalist card ~/.claude/projects --check     check every card
  annalist card --session 079da                a session from the store

Text is redacted first. The same messages give the same bytes. The card of an agent's transcript \
covers the messages of the person and the assistant; that of a session as JSON, all but tool \
messages. --all-roles includes all.")]
pub(super) struct Args {
    /// Transcripts, folders of them, or `-` for standard input; with --check also cards as JSON
    #[arg(required_unless_present = "session", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Sessions in the store, by ID or ID prefix
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    session: Vec<String>,
    /// Output format: YAML documents, or JSON, one card per line if there are several
    #[arg(long, value_parser = ["yaml", "json"], default_value = "yaml", conflicts_with = "check")]
    format: String,
    /// Lines that end with `...`: truncated ones, or all without a question or exclamation mark
    #[arg(long, value_parser = ["cut", "template"], default_value = "cut")]
    ellipsis: String,
    /// Include messages of every role, also tool and system messages
    #[arg(long)]
    all_roles: bool,
    /// Print the checklist of each card instead; fail if a check fails
    #[arg(long)]
    check: bool,
    /// Read the named files as this transcript format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
}

struct MadeCard {
    card: Card,
    head: CardHead,
    /// Text from which the title was made; unknown for a card that was read from a file.
    opening: Option<Redacted>,
}

impl MadeCard {
    fn of(builder: CardBuilder<'_>, session: Redacted) -> MadeCard {
        let opening = builder.opening().cloned();
        let head = CardHead { session, at: builder.last_at() };
        MadeCard { card: builder.finish(), head, opening }
    }
}

struct Cards<'a> {
    args: &'a Args,
    gate: &'a Gate,
    made: Vec<MadeCard>,
    /// False if an input could not be read.
    whole: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    if args.files.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::usage("`-` is standard input: use it only once"));
    }
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let mut cards = Cards { args, gate: &gate, made: Vec::new(), whole: true };
    for path in &args.files {
        match path.as_os_str() == "-" {
            true => cards.source(Source::open(path, EXPECTED)?, true),
            false => cards.path(path),
        }
    }
    for id in &args.session {
        let mut builder = cards.builder();
        let mut each = |entry: &_, _| builder.entry(entry);
        let stored = StoredSession::find(id, &config, Some(&mut each)).await?;
        cards.made.push(MadeCard::of(builder, stored.session.native_id));
    }
    let mut all_hold = true;
    match (args.check, args.format == "json", cards.made.as_slice()) {
        (true, _, made) => all_hold = print_checks(made, &gate)?,
        (false, false, made) => {
            let pages: Vec<String> = made.iter().map(|it| yaml(&it.card, &it.head)).collect();
            output::bytes(pages.join("---\n").as_bytes())?;
        }
        (false, true, [only]) => output::json(&only.card)?,
        (false, true, made) => made.iter().try_for_each(|it| output::json_line(&it.card))?,
    }
    output::fail_if(!(cards.whole && all_hold))
}

impl<'a> Cards<'a> {
    fn builder(&self) -> CardBuilder<'a> {
        let is_cut = self.args.ellipsis == "cut";
        let ellipsis = if is_cut { Ellipsis::Cut } else { Ellipsis::Template };
        CardBuilder::new(self.gate).ellipsis(ellipsis).all_roles(self.args.all_roles)
    }

    fn path(&mut self, path: &Path) {
        let (found, problems) = walk(&[path.to_owned()]);
        for (path, error) in problems {
            self.problem(&unreadable(path.display())(error).line);
        }
        let before = self.made.len();
        for Candidate { path, named, .. } in &found {
            match Source::open(path, EXPECTED) {
                Ok(source) => self.source(source, *named),
                Err(failure) => self.problem(&failure.line),
            }
        }
        let in_folder = found.iter().any(|candidate| !candidate.named);
        if in_folder && self.whole && self.made.len() == before {
            let looked = counted(found.len() as u64, "file");
            self.problem(&format!("{}: no transcripts in {looked}", path.display()));
        }
    }

    fn problem(&mut self, what: &str) {
        self.whole = false;
        output::note(&output::error(self.gate.redact(what).as_str()));
    }

    /// Reads a source that the user named, or that was found in a folder.
    fn source(&mut self, mut source: Source, named: bool) {
        if source.is_private {
            return note_private(&source.name);
        }
        match self.read(&mut source, named) {
            Ok(findings) => {
                let warning = |it: &Finding| output::warning(&format!("{}: {it}", source.name));
                output::notes(findings.iter().map(warning), LISTED_MAX, "more findings");
            }
            Err(failure) => self.problem(&failure.line),
        }
    }

    fn read(&mut self, source: &mut Source, named: bool) -> Result<Vec<Finding>> {
        let head = source.head();
        if self.args.check && head.contains("\"summary_bullets\"") && head.starts_with('{') {
            return self.cards(source);
        }
        let format = source.format(self.args.from.filter(|_| named));
        // A session as JSON is detected as API messages, or as nothing if it has no messages.
        let maybe_session = match format {
            Ok(Format::Openai | Format::Anthropic) => self.args.from.is_none(),
            Err(DetectError::Nothing) => named,
            Ok(_) | Err(_) => false,
        };
        if maybe_session && let Some(findings) = self.session(source)? {
            return Ok(findings);
        }
        match format {
            Ok(format) => self.transcript(source, format),
            Err(_) if !named => Ok(Vec::new()),
            Err(unknown) => Err(Failure::failed(format!("{}: {unknown}", source.name))),
        }
    }

    /// Makes the card of a session as JSON; `None` if the input has another format.
    fn session(&mut self, source: &mut Source) -> Result<Option<Vec<Finding>>> {
        let gate = self.gate;
        let mut builder = self.builder();
        let name = source.name.clone();
        let read = read_session(source.input()?, |message| {
            builder.message(&message.role, &gate.redact(&message.text), message.at);
        });
        let read = read.map_err(unreadable(&name))?;
        let Some(document) = read else { return Ok(None) };
        if document.messages == 0 && !document.findings.is_empty() {
            return Err(nothing_read(&name, document.findings.len()));
        }
        self.made.push(MadeCard::of(builder, gate.redact(&document.session_id)));
        Ok(Some(document.findings))
    }

    fn transcript(&mut self, source: &mut Source, format: Format) -> Result<Vec<Finding>> {
        let (gate, builder) = (self.gate, || self.builder());
        let mut findings = Vec::new();
        let mut open: Vec<(Redacted, CardBuilder<'_>)> = Vec::new();
        source.hear(format, gate, &mut |heard| match heard {
            Heard::Session(session) => open.push((session.native_id.clone(), builder())),
            Heard::Entry(entry, _) => {
                open.last_mut().into_iter().for_each(|(_, builder)| builder.entry(entry));
            }
            Heard::Finding(finding) if finding.severity >= Severity::Warning => {
                findings.push(finding);
            }
            Heard::Finding(_) => {}
        })?;
        if open.is_empty() {
            let nothing = format!("{}: no conversation found, read as {format}", source.name);
            return Err(match findings.len() {
                0 => Failure::failed(nothing),
                findings => nothing_read(&source.name, findings),
            });
        }
        self.made.extend(open.into_iter().map(|(id, builder)| MadeCard::of(builder, id)));
        Ok(findings)
    }

    fn cards(&mut self, source: &mut Source) -> Result<Vec<Finding>> {
        let text = source.text(CARDS_BYTES_MAX)?;
        for card in serde_json::Deserializer::from_str(&text).into_iter::<Card>() {
            // The error message may contain text of the card.
            let card = card.map_err(|error| {
                let (name, line) = (&source.name, error.line());
                Failure::failed(format!("{name}: line {line}: expected the seven fields of a card"))
            })?;
            self.made.push(MadeCard { card, head: CardHead::default(), opening: None });
        }
        Ok(Vec::new())
    }
}

fn nothing_read(name: &str, findings: usize) -> Failure {
    let findings = counted(findings as u64, "finding");
    Failure::failed(format!("{name}: nothing could be read: {findings}"))
}

fn print_checks(made: &[MadeCard], gate: &Gate) -> Result<bool> {
    let mut all_hold = true;
    for (at, made) in made.iter().enumerate() {
        let checks = checklist(&made.card, made.opening.as_ref(), gate);
        all_hold &= checks.iter().all(CardCheck::holds);
        if at > 0 {
            output::line("")?;
        }
        let session = made.head.session.as_str();
        let session = if session.is_empty() { "card" } else { session };
        let title = made.card.title.as_str().chars().filter(|letter| !letter.is_control());
        let title: String = title.collect();
        output::line(&format!("{}: {title}", output::shorten(session, 40)))?;
        let mut table = output::table(&["", "check", "seen", "rule"]);
        for check in &checks {
            let result = if check.holds() { "ok" } else { "FAILED" };
            table.add_row([result, check.asks, &check.seen, check.rule]);
        }
        output::print_table(&table)?;
        let mut findings = checks.iter().flat_map(|check| &check.findings).take(FINDINGS_MAX);
        findings.try_for_each(|finding| output::line(&format!("  {finding}")))?;
    }
    Ok(all_hold)
}
