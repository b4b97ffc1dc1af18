//! One answer, checked by the host: the category is one of five, every record was shown in this batch, and the lesson
//! is in the words of the records that it names.

use super::super::handed::{self, Handed, place};
use super::super::reflect::{Category, Note};
use super::ground::{Ground, unproven};
use super::material::{Behind, Material};
use super::schema::{Lesson, REFLECT_TOOL_NAME};
use super::{LESSON_LETTERS_MAX, LESSON_RECORDS_MAX, LESSONS_MAX};
use crate::domain::{Reply, Rung};
use crate::privacy::{Gate, Redacted};
use crate::words::folded;
use std::collections::BTreeSet;

/// The list by which the object is known.
const LIST: &str = "lessons";
/// The fields of an entry.
const FIELDS: [&str; 3] = ["category", "lesson", "records"];

/// Why an entry cannot be used: the rule, and what was expected in no words of anybody's.
type Problem = (&'static str, String);

/// Reads `reply`.
pub(super) fn read(reply: &Reply, rung: Rung) -> Handed {
    handed::read(reply, rung, (REFLECT_TOOL_NAME, LIST))
}

/// What the entries of one answer come to, beside the lessons that were kept.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// What is wrong with the shape of entries, which may be mended.
    pub(super) problems: Vec<String>,
    /// Lessons that the records do not show.
    pub(super) unproven: usize,
}

impl Handed {
    /// Checks the entries against `material`, adds the good ones to `kept`, and says what is wrong with the others.
    pub(super) fn learn(
        &mut self,
        material: &Material,
        gate: &Gate,
        kept: &mut Vec<Note>,
    ) -> Checked {
        let mut checked = Checked::default();
        for (n, entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            let Some(lesson) = self.entry::<Lesson>(entry, &FIELDS) else {
                let expected = "not an entry with `category`, `lesson` and `records`";
                checked.problems.push(format!("lessons[{n}]: {expected}"));
                continue;
            };
            let (category, text, records) = match parts(&lesson, material, gate) {
                Ok(parts) => parts,
                Err((rule, problem)) => {
                    self.note(rule, format!("lessons[{n}]{problem}"));
                    checked.problems.push(format!("lessons[{n}]{problem}"));
                    continue;
                }
            };
            let (near, far): (Vec<&Behind>, Vec<&Behind>) =
                records.into_iter().partition(|it| it.ground.touches(&text));
            let grounds: Vec<&Ground> = near.iter().map(|it| &it.ground).collect();
            if let Some(why) = unproven(&text, &grounds) {
                self.note("unproven-lesson", format!("lessons[{n}]: {why}"));
                checked.unproven += 1;
                continue;
            }
            if !far.is_empty() {
                let many = far.len();
                let detail = format!("lessons[{n}] shares no word with {many} of its records");
                self.note("unrelated-record", detail);
            }
            let known = folded(text.as_str());
            if kept.iter().any(|it| folded(it.headline.as_str()) == known) {
                self.note("lesson-twice", format!("lessons[{n}] says what another one says"));
            } else if kept.len() == LESSONS_MAX {
                self.note("too-many-lessons", format!("only {LESSONS_MAX} of a batch are kept"));
                break;
            } else {
                kept.push(note(category, text, near));
            }
        }
        checked
    }
}

fn note(category: Category, headline: Redacted, mut records: Vec<&Behind>) -> Note {
    records.sort_by_key(|it| (it.at, it.id));
    Note {
        category,
        headline,
        failed: records.iter().filter(|it| it.failed).count(),
        at: records.last().and_then(|it| it.at),
        records: records.into_iter().map(|it| it.id).collect(),
    }
}

/// Category, text and records of a lesson that has the right shape.
fn parts<'m>(
    lesson: &Lesson,
    material: &'m Material,
    gate: &Gate,
) -> Result<(Category, Redacted, Vec<&'m Behind>), Problem> {
    let named = lesson.category.trim();
    let category = Category::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(named));
    let category = category.ok_or_else(|| {
        let known = Category::ALL.map(Category::name).join(", ");
        ("unknown-category", format!(".category: expected one of {known}"))
    })?;
    let places: Option<BTreeSet<usize>> = lesson.records.iter().map(|id| place(id)).collect();
    let records: Option<Vec<&Behind>> =
        places.and_then(|places| places.into_iter().map(|at| material.records.get(at)).collect());
    let records = records
        .ok_or_else(|| ("forged-id", ".records: names a record that was not shown".to_owned()))?;
    if records.is_empty() || records.len() > LESSON_RECORDS_MAX {
        let problem = format!(".records: expected 1 to {LESSON_RECORDS_MAX} of them");
        return Err(("record-count", problem));
    }
    // What was written with escapes is a word only now.
    let passed = gate.redact(&one_line(&lesson.lesson));
    let text = gate.redact(&one_line(passed.as_str()));
    let letters = text.as_str().chars().count();
    if letters == 0 || letters > LESSON_LETTERS_MAX {
        let problem = format!(".lesson: expected 1 to {LESSON_LETTERS_MAX} letters");
        return Err(("lesson-length", problem));
    }
    Ok((category, text, records))
}

/// The words with single blanks, and nothing that moves a cursor.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
