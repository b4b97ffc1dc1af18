//! One file, read as a stream through the gate into cards.

use crate::card::{Builder, Card, Ellipsis, Head};
use crate::cli::output::Failure;
use crate::cli::stored;
use crate::cli::transcript::{Begun, Heard, begin, hand_over};
use crate::config::Config;
use crate::domain::{Finding, Format, Severity};
use crate::privacy::{Gate, Redacted};
use crate::source::{self, Unknown, read_session};
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;

/// The largest file of cards that is checked, in bytes: a card has some 3 kB.
const CARDS_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A card, and what is known beside it.
pub(super) struct Made {
    pub(super) card: Card,
    pub(super) head: Head,
    /// What the title was made of; not known of a card that was read.
    pub(super) opening: Option<Redacted>,
}

/// Makes cards of files.
pub(super) struct Cards<'a> {
    pub(super) gate: &'a Gate,
    pub(super) ellipsis: Ellipsis,
    pub(super) from: Option<Format>,
    /// Whether cards themselves are taken too.
    pub(super) check: bool,
    /// Where they go.
    pub(super) take: &'a mut dyn FnMut(Made) -> Result<(), Failure>,
}

/// How a file ended.
pub(super) enum Ended {
    /// It was read; what of it could not be is listed.
    Read(Vec<Finding>),
    /// It is private as a whole.
    Private,
    /// It was found in a folder, and is no transcript.
    PassedOver,
}

/// Why a file was not read to its end.
pub(super) enum Stop {
    /// Something is wrong with it.
    Input(String),
    /// Nothing can be printed.
    Output(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Input(format!("cannot be read: {error}"))
    }
}

impl Cards<'_> {
    /// Makes the cards of one file, called `name`, which was `named` or found in a folder.
    pub(super) fn read(
        &mut self,
        mut input: impl Read + Seek,
        name: Option<&str>,
        named: bool,
    ) -> Result<Ended, Stop> {
        let Begun { head, is_private } = begin(&mut input)?;
        if is_private {
            return Ok(Ended::Private);
        }
        let text = String::from_utf8_lossy(&head);
        if self.check && text.contains("\"summary_bullets\"") && text.starts_with('{') {
            return self.cards(input);
        }
        let format = match self.from.filter(|_| named) {
            Some(format) => Ok(format),
            None => source::detect(&head, name),
        };
        // A session as JSON looks like messages of an API, or like nothing where it has none.
        let maybe_session = match format {
            Ok(Format::Openai | Format::Anthropic) => self.from.is_none(),
            Err(Unknown::Nothing) => named,
            Ok(_) | Err(_) => false,
        };
        if maybe_session && let Some(ended) = self.session(&mut input)? {
            return Ok(ended);
        }
        input.rewind()?;
        match format {
            Ok(format) => self.transcript(format, input),
            Err(_) if !named => Ok(Ended::PassedOver),
            Err(unknown) => Err(Stop::Input(unknown.to_string())),
        }
    }

    fn hand(&mut self, builder: Builder<'_>, session: Redacted) -> Result<(), Failure> {
        let opening = builder.opening().cloned();
        let head = Head { session, at: builder.last_at() };
        (self.take)(Made { card: builder.finish(), head, opening })
    }

    /// Makes the card of a session as JSON; none if the input is something else.
    fn session(&mut self, input: impl Read + Seek) -> Result<Option<Ended>, Stop> {
        let gate = self.gate;
        let mut builder = Builder::new(gate).ellipsis(self.ellipsis);
        let read = read_session(input, |message| {
            builder.message(&message.role, &gate.redact(&message.text), message.at);
        })?;
        let Some(document) = read else { return Ok(None) };
        if document.messages == 0 && !document.findings.is_empty() {
            return Err(nothing_read(document.findings.len()));
        }
        self.hand(builder, gate.redact(&document.session_id)).map_err(Stop::Output)?;
        Ok(Some(Ended::Read(document.findings)))
    }

    /// Makes the card of a session in the store.
    pub(super) fn stored(&mut self, id: &str, config: &Config) -> Result<(), Failure> {
        let mut builder = Builder::new(self.gate).ellipsis(self.ellipsis);
        let (session, _) = stored::read(id, config, |_, entry| builder.entry(entry))?;
        self.hand(builder, session.native_id)
    }

    /// Makes a card of every conversation in a transcript.
    fn transcript(&mut self, format: Format, input: impl Read + Seek) -> Result<Ended, Stop> {
        let (gate, ellipsis) = (self.gate, self.ellipsis);
        let mut findings = Vec::new();
        let mut open: Option<(Redacted, Builder<'_>)> = None;
        let mut stop = None;
        hand_over(input, ("", format), (gate, ""), &mut |heard| {
            match heard {
                Heard::Session(session) => {
                    let next = Builder::new(gate).ellipsis(ellipsis);
                    let begun = open.replace((session.native_id.clone(), next));
                    if let Some((session, builder)) = begun {
                        stop = self.hand(builder, session).err();
                    }
                }
                Heard::Entry(entry, _) => {
                    if let Some((_, builder)) = &mut open {
                        builder.entry(entry);
                    }
                }
                Heard::Finding(finding) if finding.severity >= Severity::Warning => {
                    findings.push(finding);
                }
                Heard::Finding(_) => {}
            }
            if stop.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(stop) = stop {
            return Err(Stop::Output(stop));
        }
        match open {
            Some((session, builder)) => self.hand(builder, session).map_err(Stop::Output)?,
            None if findings.is_empty() => {
                return Err(Stop::Input(format!("no conversation in it, read as {format}")));
            }
            None => return Err(nothing_read(findings.len())),
        }
        Ok(Ended::Read(findings))
    }

    /// Hands on cards that were printed before.
    fn cards(&mut self, input: impl Read) -> Result<Ended, Stop> {
        let mut bytes = Vec::new();
        input.take(CARDS_BYTES_MAX).read_to_end(&mut bytes)?;
        for card in serde_json::Deserializer::from_slice(&bytes).into_iter::<Card>() {
            // The error itself may hold words of the card.
            let card = card.map_err(|error| {
                Stop::Input(format!("line {}: expected the seven fields of a card", error.line()))
            })?;
            let made = Made { card, head: Head::default(), opening: None };
            (self.take)(made).map_err(Stop::Output)?;
        }
        Ok(Ended::Read(Vec::new()))
    }
}

fn nothing_read(findings: usize) -> Stop {
    Stop::Input(format!("nothing in it could be read: {findings} findings"))
}
