//! Records as months of work leave them, from a seed: most of what is said is new, some is said again, in other words
//! or with another value, some takes back what was chosen, some completes what was asked for.

use annalist::Redacted;
use annalist::{
    Attempt, Claim, Decision, Digest, Discussion, Evidence, EvidenceMatch, PersonRequest,
    Provenance, Record, RecordState, RunId, SessionId, SliceId, Speaker, Timestamp,
};

const NAMESPACE: &str = "bench";
/// Verbs, things and places: few words, often used, as in real work; names and numbers make subjects rare.
const VERBS: [&str; 12] = [
    "add", "remove", "move", "rename", "cache", "test", "document", "measure", "guard", "split",
    "migrate", "retry",
];
const THINGS: [&str; 24] = [
    "queue", "worker", "uploader", "parser", "session", "cookie", "index", "journal", "lease",
    "token", "schema", "prompt", "slice", "ledger", "metric", "socket", "header", "timeout",
    "migration", "snapshot", "cursor", "batch", "retry", "cache",
];
const PLACES: [&str; 10] = [
    "staging", "production", "the nightly job", "the mobile client", "the admin page",
    "the billing service", "the importer", "the Windows build", "the docs", "the test suite",
];
const STORES: [&str; 6] = ["Postgres", "Redis", "SQLite", "Kafka", "a flat file", "S3"];

/// xorshift: the same seed, the same records.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// What a record is about; the same matter can come up again.
#[derive(Clone)]
struct Matter {
    verb: &'static str,
    thing: &'static str,
    place: &'static str,
    name: String,
    number: u64,
    kind: u64,
}

impl Matter {
    fn new(dice: &mut Dice, names: u64) -> Matter {
        Matter {
            verb: dice.of(&VERBS),
            thing: dice.of(&THINGS),
            place: dice.of(&PLACES),
            name: format!("{}{}", dice.of(&THINGS), dice.below(names)),
            number: dice.below(90),
            kind: dice.below(10),
        }
    }

    /// The matter as a claim: 0 as it first came up, 1 in nearly the same words, 2 with another value, 3 taken back.
    fn claim(&self, again: u64) -> Claim {
        let Matter { verb, thing, place, name, number, kind } = self;
        let number = if again == 2 { number + 1 } else { *number };
        match kind {
            0 | 1 => {
                let options =
                    [STORES[self.number as usize % 6], STORES[(self.number as usize + 1) % 6]];
                let chosen = options[usize::from(again >= 2)];
                Claim::Decision(Decision {
                    options: options.map(|it| format!("{it} for {name}")).to_vec(),
                    chosen: format!("{chosen} for {name}"),
                    rationale: format!("the {thing} of {name} must survive in {place}"),
                })
            }
            2 => Claim::Discussion(Discussion {
                topic: format!(
                    "how the {thing} of {name} behaves in {place} after {number} minutes"
                ),
                points: vec![format!("{verb} it"), format!("leave the {thing} alone {again}")],
            }),
            3..=5 => Claim::Attempt(Attempt {
                action: format!(
                    "{verb} the {thing} of {name} in {place} with limit {}",
                    self.number
                ),
                result: format!("exit {again} after {number} s"),
                succeeded: again != 2,
            }),
            _ => Claim::Request(PersonRequest {
                intent: format!("so that {place} keeps working for {name}"),
                target: Some(format!("src/{thing}/{name}.rs")),
                summary: match again {
                    1 => format!(
                        "Please {verb} the {thing} of {name}, in {place}, within {number} seconds!"
                    ),
                    3 => format!(
                        "{verb} the {thing} of {name} in {place} within {} seconds instead",
                        number + 5
                    ),
                    _ => format!("{verb} the {thing} of {name} in {place} within {number} seconds"),
                },
            }),
        }
    }
}

/// `count` records in the order of time; one in five brings an earlier matter up again.
pub(crate) fn records(count: usize, first: usize, dice: &mut Dice, names: u64) -> Vec<Record> {
    let mut matters: Vec<Matter> = Vec::new();
    let mut records = Vec::with_capacity(count);
    for n in 0..count {
        let again = if n > 0 && dice.below(5) == 0 { dice.below(4) } else { 4 };
        let (matter, again) = if again < 4 {
            (matters[dice.below(matters.len() as u64) as usize].clone(), again)
        } else {
            matters.push(Matter::new(dice, names));
            (matters[matters.len() - 1].clone(), 0)
        };
        records.push(record(matter.claim(again), first + n, dice));
    }
    records
}

fn record(claim: Claim, n: usize, dice: &mut Dice) -> Record {
    let said_by = [Speaker::Person, Speaker::Assistant, Speaker::Assistant, Speaker::Tool];
    let speaker = said_by[dice.below(4) as usize];
    let evidence = claim.strings().into_iter().take(2).enumerate().map(|(at, (field, text))| {
        let change = if text.contains("instead") { "no, " } else { "" };
        let words = format!("{change}{text}");
        Evidence {
            field,
            ordinal: at as u32,
            line: 1,
            bytes: 0..words.len(),
            speaker: if at == 0 { speaker } else { Speaker::Assistant },
            name: None,
            found: EvidenceMatch::Exact,
            words: Redacted::reopened(words),
        }
    });
    let evidence = evidence.collect();
    let session = Digest::of(&["session", &(n / 20).to_string()]);
    let run = RunId(Digest::of(&["run", &n.to_string()]));
    Record {
        id: Record::id_of(run, &claim),
        evidence,
        provenance: Provenance {
            namespace: NAMESPACE.to_owned(),
            session: SessionId(session),
            slice: SliceId(session),
            run,
            entries: (0, 9),
            at: Some(Timestamp(1_760_000_000_000 + n as i64 * 60_000)),
        },
        claim,
        score: 1.0,
        state: RecordState::Staged,
        reason: None,
    }
}
