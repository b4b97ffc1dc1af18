//! Ten thousand records against ten thousand items with terms and by statements; a thousand by fields.

use annalist::domain::{
    Claim, ClaimKind, Decision, Digest, Provenance, Record, RecordState, RunId, SessionId, SliceId,
};
use annalist::score::{Gold, Importance, Item, Wanted, score};
use criterion::{Criterion, Throughput, criterion_group};
use std::hint::black_box;

criterion_group!(scores, assignment);

/// Items, and records.
const MANY: usize = 10_000;
/// The same by fields: every record that shares a word is compared field by field.
const FEWER: usize = 1_000;

/// What the `n`th decision chose and why: words that some dozens of others have too, and some that all have.
fn said(n: usize) -> [String; 2] {
    let word = |at: usize| format!("word{}", (n * 7_919 + at * 104_729 + n * at * 31) % 3_001);
    let words = |from: usize| (from..from + 6).map(word).collect::<Vec<_>>().join(" ");
    [format!("the {} of team {}", words(0), n % 911), format!("because the {}", words(6))]
}

fn record(n: usize) -> Record {
    let digest = Digest::of(&["bench"]);
    let [chosen, rationale] = said(n);
    let claim = Claim::Decision(Decision { options: vec!["a file".to_owned()], chosen, rationale });
    Record {
        id: Record::id_of(RunId(digest), &claim),
        claim,
        provenance: Provenance {
            namespace: "bench".to_owned(),
            session: SessionId(digest),
            slice: SliceId(digest),
            run: RunId(digest),
            entries: (0, 0),
            at: None,
        },
        evidence: Vec::new(),
        score: 1.0,
        state: RecordState::Staged,
        reason: None,
    }
}

fn gold(items: usize, dress: impl Fn(usize, &mut Item)) -> Gold {
    let item = |n: usize| {
        let mut item = Item {
            id: n.to_string(),
            kind: ClaimKind::Decision,
            importance: Importance::Core,
            statement: said(n).join(" "),
            terms: Vec::new(),
            fields: Default::default(),
            succeeded: None,
            quote: None,
            entry_hint: None,
        };
        dress(n, &mut item);
        item
    };
    Gold { items: (0..items).map(item).collect(), ..Gold::default() }
}

fn assignment(c: &mut Criterion) {
    let records: Vec<Record> = (0..MANY).rev().map(record).collect();
    let terms = gold(MANY, |n, item| {
        let group = |text: String| vec![text, "nothing has this".to_owned()];
        item.terms = vec![
            group(format!("team {} ", n % 911)),
            group(format!("word{}", (n * 7_919) % 3_001)),
        ];
    });
    let fields = gold(FEWER, |n, item| {
        let [chosen, rationale] = said(n).map(Wanted::Text);
        item.fields.extend([("chosen".to_owned(), chosen), ("rationale".to_owned(), rationale)]);
    });
    let mut group = c.benchmark_group("score");
    group.sample_size(10);
    let statements = gold(MANY, |_, _| {});
    for (name, gold) in [("terms", terms), ("statements", statements), ("fields", fields)] {
        // They are in the reverse order: the last ones are those of the first items.
        let records = &records[MANY - gold.items.len()..];
        group.throughput(Throughput::Elements(gold.items.len() as u64));
        group.bench_function(name, |b| b.iter(|| score(black_box(&gold), records)));
    }
    group.finish();
}
