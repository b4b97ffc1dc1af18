//! Cards as they are printed: YAML, JSON, or what their checklist says.

use super::read::Made;
use crate::card::{Card, Check, checklist, yaml};
use crate::cli::output::{self, Failure};
use crate::domain::FINDINGS_MAX;
use crate::privacy::Gate;
use serde::Serialize;

/// Prints one card after the other.
pub(super) struct Printer<'g> {
    style: Style<'g>,
    /// Cards that were taken.
    taken: u64,
    all_hold: bool,
}

enum Style<'g> {
    Yaml,
    /// A single card is printed for people, several for programs: the first waits for the second.
    Json(Option<Box<Card>>),
    Check(&'g Gate),
}

impl<'g> Printer<'g> {
    pub(super) fn yaml() -> Printer<'g> {
        Printer::new(Style::Yaml)
    }

    pub(super) fn json() -> Printer<'g> {
        Printer::new(Style::Json(None))
    }

    pub(super) fn check(gate: &'g Gate) -> Printer<'g> {
        Printer::new(Style::Check(gate))
    }

    fn new(style: Style<'g>) -> Printer<'g> {
        Printer { style, taken: 0, all_hold: true }
    }

    pub(super) fn take(&mut self, made: Made) -> Result<(), Failure> {
        self.taken += 1;
        match &mut self.style {
            Style::Yaml => {
                let parting = if self.taken > 1 { "---\n" } else { "" };
                bytes(&format!("{parting}{}", yaml(&made.card, &made.head)))
            }
            Style::Json(first) => {
                if let Some(first) = first.take() {
                    line(&*first)?;
                }
                match self.taken {
                    1 => *first = Some(Box::new(made.card)),
                    _ => line(&made.card)?,
                }
                Ok(())
            }
            Style::Check(gate) => {
                let checks = checklist(&made.card, made.opening.as_ref(), gate);
                self.all_hold &= checks.iter().all(Check::holds);
                if self.taken > 1 {
                    output::line("")?;
                }
                table(&made, &checks)
            }
        }
    }

    /// Prints what waits; says whether every check held.
    pub(super) fn end(self) -> Result<bool, Failure> {
        if let Style::Json(Some(card)) = &self.style {
            output::json(card)?;
        }
        Ok(self.all_hold)
    }
}

fn table(made: &Made, checks: &[Check]) -> Result<(), Failure> {
    let session = made.head.session.as_str();
    let session = if session.is_empty() { "card" } else { session };
    let title = made.card.title.as_str().chars().filter(|letter| !letter.is_control());
    let title: String = title.collect();
    output::line(&format!("{}: {title}", output::shorten(session, 40)))?;
    let mut table = output::table(&["", "check", "seen", "rule"]);
    for check in checks {
        let result = if check.holds() { "ok" } else { "FAILED" };
        table.add_row([result, check.asks, &check.seen, check.rule]);
    }
    output::print_table(&table)?;
    let findings = checks.iter().flat_map(|check| &check.findings);
    findings.take(FINDINGS_MAX).try_for_each(|finding| output::line(&format!("  {finding}")))
}

fn line(card: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(card);
    let text = text.map_err(|error| Failure::failed(format!("cannot print: {error}")))?;
    bytes(&format!("{text}\n"))
}

/// Prints as it is: a card may hold what looks like colours.
fn bytes(text: &str) -> Result<(), Failure> {
    output::bytes(text.as_bytes()).map(|_| ())
}
