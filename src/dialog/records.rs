//! What records know of a turn: what was asked for in one line, what was decided, what was tried and how
//! it ended. Only proven ones speak.

use super::cut::{Size, within};
use super::turn::{SAID_CHARS_MAX, has_words, ours};
use super::{CompactSummary, Rules};
use crate::domain::{Claim, Record, RecordState};
use crate::privacy::{Redacted, Woven};

/// Decisions and attempts that are told of one turn; of more the last ones.
const TOLD_MAX: usize = 2;

/// Puts what `records` say into the turns in which it was settled.
pub(super) fn tell(turns: &mut [CompactSummary], records: &[&Record], rules: Rules<'_>) {
    let proven = records.iter().filter(|record| record.state == RecordState::Staged);
    let settled: Vec<(u32, &Claim)> = proven.filter_map(|record| settled(record)).collect();
    for turn in turns {
        let Some((first, last)) = turn.entries else { continue };
        let of_it = settled.iter().filter(|(said, _)| (first..=last).contains(said));
        let claims: Vec<&Claim> = of_it.map(|(_, claim)| *claim).collect();
        tell_turn(turn, &claims, rules);
    }
}

/// A claim, and the last entry that it rests on.
fn settled(record: &Record) -> Option<(u32, &Claim)> {
    let last = record.evidence.iter().map(|evidence| evidence.ordinal).max()?;
    Some((last, &record.claim))
}

fn tell_turn(turn: &mut CompactSummary, claims: &[&Claim], rules: Rules<'_>) {
    let (mut wanted, mut topic, mut done) = (None, None, Vec::new());
    for claim in claims {
        let passed = rules.gate.redact(claim.headline());
        let said = within(&passed, Size::chars(SAID_CHARS_MAX), rules.gate);
        if !has_words(said.as_str()) {
            continue;
        }
        match claim {
            Claim::Request(_) => wanted = wanted.or_else(|| Some(words("requested: ", &said, ""))),
            Claim::Discussion(_) => topic = topic.or_else(|| Some(words("discussed: ", &said, ""))),
            Claim::Decision(_) => done.push(words("; decision: ", &said, "")),
            Claim::Attempt(tried) => {
                let how = if tried.succeeded { " (worked)" } else { " (did not fully work)" };
                done.push(words("; tried: ", &said, how));
            }
        }
    }
    // What the turn was about is better told by the person's own words than by a topic.
    let topic = topic.filter(|_| turn.user_intent == ours("unclear request"));
    if let Some(intent) = wanted.or(topic) {
        turn.user_intent = intent;
    }
    for more in done.iter().skip(done.len().saturating_sub(TOLD_MAX)) {
        let whole = [Woven::Passed(&turn.action_taken), Woven::Passed(more)];
        turn.action_taken = Redacted::weave(&whole);
    }
}

fn words(before: &'static str, said: &Redacted, behind: &'static str) -> Redacted {
    Redacted::weave(&[Woven::Ours(before), Woven::Passed(said), Woven::Ours(behind)])
}
