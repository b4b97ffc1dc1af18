//! One answer, checked by the host: every id was handed out in this batch, every target was offered with its record,
//! every record is there once, and a change is shown by words of the record.

use super::super::handed::{self, Handed, place};
use super::super::verdict::{Verdict, Verdicts};
use super::batch::{Batch, Offered};
use super::schema::{Judgement, TOOL_NAME};
use crate::domain::{Reply, Rung};
use crate::words::folded;
use std::collections::BTreeSet;

/// The list by which the object is known.
const LIST: &str = "dispositions";
/// The fields of an entry.
const FIELDS: [&str; 4] = ["record", "disposition", "target", "evidence"];
/// The shortest evidence that shows anything, in bytes of its folded form.
const EVIDENCE_BYTES_MIN: usize = 6;

/// Reads `reply`.
pub(super) fn read(reply: &Reply, rung: Rung) -> Handed {
    handed::read(reply, rung, (TOOL_NAME, LIST))
}

impl Handed {
    /// Checks the entries for the records of `batch` that are not `done` yet: good ones become verdicts, and what is
    /// wrong with the others is said, in ids of the batch and no words.
    pub(super) fn check(
        &mut self,
        batch: &Batch,
        done: &mut BTreeSet<usize>,
        verdicts: &mut Verdicts,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        let mut met = BTreeSet::new();
        for (n, entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            let Some(judgement) = self.entry::<Judgement>(entry, &FIELDS) else {
                problems.push(format!(
                    "dispositions[{n}]: not an entry with `record` and `disposition`"
                ));
                continue;
            };
            let Some(at) = place(&judgement.record).filter(|at| *at < batch.records.len()) else {
                self.note("forged-id", format!("dispositions[{n}] names no record of the batch"));
                problems.push(format!("dispositions[{n}].record: no such record"));
                continue;
            };
            if !met.insert(at) || done.contains(&at) {
                self.note("record-twice", format!("R{} came twice; the first counts", at + 1));
                continue;
            }
            let Some(offered) = batch.records.get(at) else { continue };
            match judge(offered, &judgement) {
                Ok((target, verdict)) => {
                    done.insert(at);
                    for (n, (_, memory)) in offered.targets.iter().enumerate() {
                        let chosen = target.is_none_or(|target| target == n);
                        let verdict = if chosen { verdict } else { Verdict::Unrelated };
                        verdicts.insert(offered.record, *memory, verdict);
                    }
                }
                Err((rule, problem)) => {
                    self.note(rule, format!("R{}: {problem}", at + 1));
                    problems.push(format!("R{}: {problem}", at + 1));
                }
            }
        }
        let missing = (0..batch.records.len()).filter(|at| !done.contains(at) && !met.contains(at));
        problems.extend(missing.map(|at| format!("R{}: missing", at + 1)));
        problems
    }
}

/// Which of the offered memories is meant, all if none, and how the record stands to it.
fn judge(
    offered: &Offered,
    judgement: &Judgement,
) -> Result<(Option<usize>, Verdict), (&'static str, String)> {
    let verdict = match judgement.disposition.trim() {
        "add" => return Ok((None, Verdict::Unrelated)),
        "discard" => return Ok((None, Verdict::Nothing)),
        "merge" | "duplicate" => Verdict::Same,
        "conflict" => Verdict::Conflict,
        "supersede" => Verdict::Replaces,
        _ => return Err(("unknown-disposition", "no such disposition".to_owned())),
    };
    let named = judgement.target.as_deref().map(str::trim).unwrap_or_default();
    let target = offered.targets.iter().position(|(id, _)| id.eq_ignore_ascii_case(named));
    let Some(target) = target else {
        let known: Vec<&str> = offered.targets.iter().map(|(id, _)| id.as_str()).collect();
        return Err(("forged-target", format!("target: expected {}", known.join(" or "))));
    };
    if verdict == Verdict::Replaces && !shows(offered, judgement.evidence.as_deref()) {
        let problem = "evidence: not in the `words` of the record; without such words no supersede";
        return Err(("unproven-change", problem.to_owned()));
    }
    Ok((Some(target), verdict))
}

/// Whether `evidence` stands in the words of the record.
fn shows(offered: &Offered, evidence: Option<&str>) -> bool {
    let evidence = folded(evidence.unwrap_or_default());
    let long = evidence.len() >= EVIDENCE_BYTES_MIN;
    long && offered.words.iter().any(|words| folded(words.as_str()).contains(&evidence))
}
