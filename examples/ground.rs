//! From a model's answer to records: what was said is proven, what was not is quarantined.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{Digest, EntryKind, Provenance, RunId, SessionId, Speaker};
use annalist::{Gate, SliceSettings, Slicer, ground_claims};
use annalist::{RawEntry, redact_entry};
use annalist::{decode_answer, validate_answer};

const SAID: &str = "Redis loses jobs. Take Postgres with `SKIP LOCKED`: one thing less to run.";
/// As models write it, with a comma too many. Nobody spoke of a port.
const ANSWER: &str = r#"{
"decisions": [{"options": ["Redis", "Postgres"], "chosen": "Postgres with `SKIP LOCKED`",
               "rationale": "One thing less to run"}],
"attempts": [{"action": "Moved Redis to port 6380", "result": "It holds", "succeeded": true}],
"discussions": [], "requests": [],}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = SessionId(Digest::of(&["example"]));
    let settings = SliceSettings { tokens: 1_000, tool_tokens: 200 };
    let mut slicer = Slicer::new(session, settings, Default::default());
    let raw = RawEntry::new(1, Speaker::Person, EntryKind::Prompt, SAID);
    slicer.push(redact_entry(raw, 0, &Gate::new(&[]), &mut Default::default()));
    let slice = slicer.finish().pop().ok_or("an entry makes a slice")?.slice;

    let (value, repairs) = decode_answer(ANSWER);
    repairs.iter().for_each(|repair| println!("overlooked: {}", repair.finding()));
    let (run, namespace) = (RunId(Digest::of(&["by hand"])), "example".to_owned());
    let entries = slice.range();
    let provenance = Provenance { namespace, session, slice: slice.id, run, entries, at: None };
    for record in ground_claims(&slice, None, validate_answer(value).claims, &provenance).records {
        println!("{}: {}", record.state.name(), record.claim.headline());
        record.reason.iter().for_each(|reason| println!("  because of {reason}"));
        for it in record.evidence {
            let (how, words) = (it.found.name(), it.words.as_str());
            println!("  {} rests on entry {}, {how}: {words}", it.field, it.ordinal);
        }
    }
    Ok(())
}
