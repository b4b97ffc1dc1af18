//! Ten thousand records against ten thousand items: with terms, by statements and by fields; a thousand that are all
//! alike, as what is made from one template is.

use annalist::domain::{
    Claim, ClaimKind, Decision, Digest, Provenance, Record, RecordState, RunId, SessionId, SliceId,
};
use annalist::score::{Gold, Importance, Item, Wanted, score};
use criterion::{Criterion, Throughput, criterion_group};
use std::hint::black_box;

criterion_group!(scores, assignment);

/// Items, and records.
const MANY: usize = 10_000;
/// The same where each answers each: the answers alone are the product of both.
const FEWER: usize = 1_000;

/// What the `n`th decision chose and why: words that some dozens of others have too, and some that all have.
fn said(n: usize) -> [String; 2] {
    let word = |at: usize| format!("word{}", (n * 7_919 + at * 104_729 + n * at * 31) % 3_001);
    let words = |from: usize| (from..from + 6).map(word).collect::<Vec<_>>().join(" ");
    [format!("the {} of team {}", words(0), n % 911), format!("because the {}", words(6))]
}

/// The `n`th of statements that all are alike.
fn template(n: usize) -> String {
    format!(
        "The nightly report of team {n} is kept in a file on the shared disk for {} days",
        n % 97
    )
}

fn record(n: usize) -> Record {
    let [chosen, rationale] = said(n);
    record_of(chosen, rationale)
}

fn record_of(chosen: String, rationale: String) -> Record {
    let digest = Digest::of(&["bench"]);
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
    let fields = |n: usize, item: &mut Item| {
        let [chosen, rationale] = said(n).map(Wanted::Text);
        item.fields.extend([("chosen".to_owned(), chosen), ("rationale".to_owned(), rationale)]);
    };
    let options = |n: usize, item: &mut Item| {
        fields(n, item);
        item.fields.insert("options".to_owned(), Wanted::Texts(vec!["a file".to_owned()]));
    };
    let mut group = c.benchmark_group("score");
    group.sample_size(10);
    let kinds = [
        ("terms", terms),
        ("statements", gold(MANY, |_, _| {})),
        ("fields", gold(MANY, fields)),
        ("fields of which all have one", gold(MANY, options)),
        ("statements from one template", gold(FEWER, |n, item| item.statement = template(n))),
    ];
    let alike: Vec<Record> =
        (0..FEWER).rev().map(|n| record_of(template(n), String::new())).collect();
    for (name, gold) in kinds {
        let records = if gold.items.len() < MANY { &alike } else { &records };
        group.throughput(Throughput::Elements(gold.items.len() as u64));
        group.bench_function(name, |b| b.iter(|| score(black_box(&gold), records)));
    }
    group.finish();
}
