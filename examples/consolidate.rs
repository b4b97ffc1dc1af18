//! Records become memory: one plan, looked at, applied, undone: `cargo run --example consolidate`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{
    Claim, Decision, Digest, Evidence, EvidenceMatch, MemoryMap, Provenance, Record, RecordId,
    RecordState, RunId, SessionId, SliceId, Speaker, Timestamp,
};
use annalist::{Gate, Pii};
use annalist::{Memories, Verdicts, consolidate};
use std::error::Error;

/// A person's choice between two stores, in these words, on a day of March.
fn chose(store: &str, words: &str, day: u8) -> Record {
    let claim = Claim::Decision(Decision {
        options: ["Redis", "Postgres"].map(str::to_owned).to_vec(),
        chosen: store.to_owned(),
        rationale: "the queue must survive a restart".to_owned(),
    });
    let run = RunId(Digest::of(&["run", words]));
    let words = Gate::new(&Pii::ALL).redact(words);
    Record {
        id: Record::id_of(run, &claim),
        provenance: Provenance {
            namespace: "shop".to_owned(),
            session: SessionId(Digest::of(&["session"])),
            slice: SliceId(Digest::of(&["slice"])),
            run,
            entries: (0, 8),
            at: Timestamp::parse(&format!("2026-03-{day:02}T09:00:00")),
        },
        evidence: vec![Evidence {
            field: "chosen".to_owned(),
            ordinal: 4,
            line: 12,
            bytes: 0..words.len(),
            speaker: Speaker::Person,
            name: None,
            found: EvidenceMatch::Exact,
            words,
        }],
        claim,
        score: 1.0,
        state: RecordState::Staged,
        reason: None,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let records = [
        chose("Redis", "Redis it is: fast enough", 2),
        chose("Postgres", "No, take Postgres after all; the queue must survive a restart", 9),
    ];
    let memories = Memories::new("shop");
    let (plan, findings) = consolidate(&records, &memories, &Verdicts::none());
    assert!(findings.is_empty());
    for operation in &plan.operations {
        println!("{} ({}): {}", operation.disposition.name(), operation.rule, operation.record);
    }

    let mut state = MemoryMap::new();
    let ids: Vec<RecordId> = records.iter().map(|record| record.id).collect();
    assert_eq!(plan.check(&ids, &state), []);
    plan.apply(&mut state)?;
    for memory in state.values() {
        println!("{} {}: {}", memory.state.name(), memory.claim.headline(), memory.id);
    }
    plan.undo(&mut state)?;
    assert!(state.is_empty());
    Ok(())
}
