//! Adjudication: a model's verdicts on pairs that the rules left open, batch by batch. Every id, and the evidence
//! for every change, is checked; forged, missing or unproven answers are asked for again, then left open.

use super::answer::{Answer, Judgement, SCHEMA_VERSION, tool};
use super::candidates::{Index, Memories};
use super::incoming::said_by;
use super::phrases::says_no;
use super::subject::SearchKeys;
use super::verdict::{NearbyStatement, OpenPair, Verdict, Verdicts};
use crate::domain::{
    Claim, ClaimKind, Digest, Disposition, Finding, LeftOpen, Memory, MemoryId, MemoryMap,
    MemoryState, OutputMode, Plan, Record, RecordId, Severity, Speaker, Stage, Timestamp, Tokens,
    ToolSpec, estimate_tokens, is_partly,
};
use crate::llm::prompt::{BatchPrompt, Form};
use crate::privacy::Redacted;
use crate::text::ends::{is_of_day, names_day};
use crate::text::tokens::folded;
use crate::text::truncate;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const BATCH_RECORDS_MAX: usize = 28;
/// Maximum size of the records and memories of one batch; with more, models skip some.
const BATCH_TOKENS_MAX: Tokens = 12_000;
/// Size of its records from which it takes no more; the rest is for a last record and for further memories.
const FULL_TOKENS: Tokens = 6_000;
/// Maximum size of one record or memory as shown; a longer one is left out.
const SHOWN_BYTES_MAX: usize = 6_000;
/// Maximum length of an answer: twenty-eight entries with evidence, and room to spare.
const REPLY_TOKENS_DEFAULT: u32 = 4_000;
/// Maximum number of memories that a batch shows beside those found by words, their tokens, and letters of each.
const FURTHER_MAX: usize = 160;
const FURTHER_TOKENS_MAX: Tokens = 5_000;
const FURTHER_LETTERS_MAX: usize = 120;
/// Number of them per record that come first because they share most words with it.
const FURTHER_NEAREST: usize = 4;
/// Maximum records of one memory under which an answer is filed. The first ones determined its
/// words; a stored memory that loses one of them changes, and the answer is dropped.
const SOURCES_MAX: usize = 64;
/// Minimum length of evidence, folded.
const EVIDENCE_BYTES_MIN: usize = 6;
const NO_END: &str = "until: not a day that its words name";

// A shown line always fits into a batch in ASCII; in other scripts it may fill one alone.
const _: () = assert!(SHOWN_BYTES_MAX / 4 < BATCH_TOKENS_MAX as usize);

/// Model, prompt and tool of adjudication.
#[derive(Debug)]
pub(crate) struct AdjudicationSpec {
    pub model: String,
    pub reply_tokens_max: u32,
    /// Sampling temperature; `None` leaves it to the endpoint.
    pub temperature: Option<f32>,
    pub(super) prompt: Arc<BatchPrompt>,
    pub(super) tool: Arc<ToolSpec>,
    pub(super) rules_tool: Redacted,
    pub(super) rules_json: Redacted,
    /// Digest of model, prompt, schema and language.
    digest: Digest,
}

impl AdjudicationSpec {
    /// Asks `model` with `prompt`, about texts that are mostly in `language`.
    pub(crate) fn new(
        model: impl Into<String>,
        language: &str,
        prompt: Arc<BatchPrompt>,
    ) -> AdjudicationSpec {
        let (model, schema) = (model.into(), SCHEMA_VERSION.to_string());
        let digest = Digest::of(&["judging", &model, prompt.line(), &schema, language]);
        let tool = tool();
        AdjudicationSpec {
            model,
            reply_tokens_max: REPLY_TOKENS_DEFAULT,
            temperature: None,
            rules_tool: prompt.rules(language, Form::Tool, tool.schema()),
            rules_json: prompt.rules(language, Form::Json, tool.schema()),
            prompt,
            tool: Arc::new(tool),
            digest,
        }
    }

    /// Digest of the question how `record` relates to `memory`. It changes with the memory, the
    /// prompt and the model; a record never changes.
    pub(crate) fn question(&self, record: RecordId, memory: &Memory) -> Digest {
        let told = serde_json::to_string(&(memory.current_claim(), memory.stage, memory.said_by));
        let (record, told) = (record.to_string(), told.unwrap_or_default());
        Digest::of(&["question", &self.digest.to_string(), &record, &memory.id.to_string(), &told])
    }
}

/// The adjudication of one batch.
#[derive(Debug)]
pub(super) struct Adjudication {
    pub(super) spec: Arc<AdjudicationSpec>,
    pub(super) batch: PairBatch,
    done: BTreeSet<usize>,
    /// Accepted entries, by record and memory.
    judged: BTreeMap<(usize, Option<MemoryId>), Verdict>,
    /// Records with a rejected verdict.
    refused: BTreeSet<usize>,
    verdicts: Verdicts,
}

/// Findings and costs of a finished dialogue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DialogueSummary {
    pub findings: Vec<Finding>,
    pub rung: OutputMode,
    pub asks: u32,
    /// False if no reply was an answer.
    pub is_usable: bool,
}

/// Outcome of one batch. Pairs without a verdict stay open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adjudicated {
    pub verdicts: Verdicts,
    /// Number of records whose verdict was rejected in the end.
    pub refused: usize,
    pub summary: DialogueSummary,
}

impl Adjudication {
    pub(super) fn new(spec: &Arc<AdjudicationSpec>, batch: PairBatch) -> Adjudication {
        let (done, judged, refused) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let (spec, verdicts) = (Arc::clone(spec), Verdicts::none());
        Adjudication { spec, batch, done, judged, refused, verdicts }
    }

    /// Number of records with a verdict.
    pub(super) fn accepted(&self) -> usize {
        self.done.len()
    }

    /// Takes verdicts from valid entries for undecided records, and returns what the model must correct. Problems name
    /// ids, no words.
    pub(super) fn check(&mut self, answer: &mut Answer) -> Vec<String> {
        let mut problems = Vec::new();
        let mut met = BTreeSet::new();
        for (n, entry) in std::mem::take(&mut answer.entries).into_iter().enumerate() {
            let Some(judgement) = answer.parse(entry) else {
                let expected = "not an entry with `record` and `disposition`";
                problems.push(format!("dispositions[{n}]: {expected}"));
                continue;
            };
            let number = judgement.record.trim().strip_prefix(['R', 'r']);
            let at = number.and_then(|it| it.parse::<usize>().ok()?.checked_sub(1));
            let Some((at, offered)) = at.and_then(|at| Some((at, self.batch.records.get(at)?)))
            else {
                answer.note("forged-id", format!("dispositions[{n}] names no record of the batch"));
                problems.push(format!("dispositions[{n}].record: no such record"));
                continue;
            };
            met.insert(at);
            match judge(&self.batch, offered, &judgement) {
                Ok((target, verdict)) => {
                    let record = &offered.offer.record;
                    match judgement.until.as_deref().map(|until| proven_end(record, until)) {
                        Some(Some(end)) => self.verdicts.note_end(record.id, end),
                        Some(None) => answer.note("unproven-end", format!("R{}: {NO_END}", at + 1)),
                        None => {}
                    }
                    let others = !self.done.insert(at);
                    let first = [None, target].map(|target| self.judged.get(&(at, target)));
                    let first = first.into_iter().flatten().next();
                    if first.is_some() || (target.is_none() && others) {
                        // A correction may repeat what was kept, or take back what was not.
                        if first != Some(&verdict) && verdict != Verdict::Unrelated {
                            let detail = format!("R{} came twice; the first counts", at + 1);
                            answer.note("record-twice", detail);
                        }
                        continue;
                    }
                    self.judged.insert((at, target), verdict);
                    // A memory that no entry names is unrelated.
                    let record = offered.offer.record.id;
                    if !others {
                        let all = offered.further(&self.batch).chain(&offered.targets);
                        all.for_each(|it| self.verdicts.insert(record, it.1, Verdict::Unrelated));
                    }
                    let named = offered.targets.iter().map(|it| it.1).filter(|_| target.is_none());
                    named.chain(target).for_each(|it| self.verdicts.insert(record, it, verdict));
                }
                Err((rule, problem)) => {
                    self.refused.insert(at);
                    answer.note(rule, format!("R{}: {problem}", at + 1));
                    problems.push(format!("R{}: {problem}", at + 1));
                }
            }
        }
        let missing =
            (0..self.batch.len()).filter(|at| !self.done.contains(at) && !met.contains(at));
        problems.extend(missing.map(|at| format!("R{}: missing", at + 1)));
        problems
    }

    pub(super) fn outcome(&mut self, mut summary: DialogueSummary) -> Adjudicated {
        let open = self.batch.len() - self.done.len();
        if open > 0 {
            let detail = format!("{open} of {} records have no verdict", self.batch.len());
            summary.findings.push(Finding::new(Severity::Warning, "left-open", 0, detail));
        }
        let refused = self.refused.difference(&self.done).count();
        Adjudicated { verdicts: std::mem::take(&mut self.verdicts), refused, summary }
    }
}

/// True if the words of `record` may name a day.
fn may_end(record: &Record) -> bool {
    record.claim.headline().split_whitespace().any(|word| {
        word.contains(|it: char| it.is_ascii_digit())
            || is_of_day(&word.to_lowercase().replace(['.', ',', ';'], ""))
    })
}

/// End of the day that a model named as the last one for `record`, if that is a decision whose words name the day, too.
fn proven_end(record: &Record, until: &str) -> Option<Timestamp> {
    let day: Date = until.trim().parse().ok()?;
    let said = record.provenance.at?.date_in(&TimeZone::UTC);
    let claim = record.claim.strings().into_iter().map(|(_, text)| text);
    let mut texts = claim.chain(record.evidence.iter().map(|it| it.words.as_str()));
    let is_proven =
        record.claim.kind() == ClaimKind::Decision && texts.any(|it| names_day(it, day, said));
    let next = Timestamp::beginning_of(day, &TimeZone::UTC).next_midnight();
    is_proven.then_some(Timestamp(next.0 - 1))
}

/// The target memory (`None`: all that were offered) and the verdict on it.
fn judge(
    batch: &PairBatch,
    offered: &OfferedRecord,
    judgement: &Judgement,
) -> Result<(Option<MemoryId>, Verdict), (&'static str, String)> {
    let verdict = match judgement.disposition.trim() {
        "add" => return Ok((None, Verdict::Unrelated)),
        "discard" => return Ok((None, Verdict::Nothing)),
        "merge" => Verdict::Same,
        "duplicate" => Verdict::Covered,
        "conflict" => Verdict::Conflict,
        "amend" => Verdict::Partly,
        "supersede" => Verdict::Replaces { agreed: offered.is_agreed() },
        _ => return Err(("unknown-disposition", "no such disposition".to_owned())),
    };
    let named = judgement.target.as_deref().map(str::trim).unwrap_or_default();
    let is_named = |id: &str| id.eq_ignore_ascii_case(named);
    // What a record restates first of all is its own memory, if that is shown for another record.
    let mut memories = batch.shown.iter().filter(|(id, _)| id.starts_with('M'));
    if memories.any(|(id, memory)| Some(*memory) == offered.offer.own && is_named(id)) {
        return Ok((None, Verdict::Unrelated));
    }
    let mut all = offered.targets.iter().chain(offered.further(batch));
    let target = all.find(|(id, _)| is_named(id));
    let Some((_, target)) = target else {
        let known: Vec<&str> = offered.targets.iter().map(|(id, _)| id.as_str()).collect();
        return Err(("forged-target", format!("target: expected {}", known.join(" or "))));
    };
    let evidence = folded(judgement.evidence.as_deref().unwrap_or_default());
    let mut shown =
        batch.records.iter().filter(|it| it.offer.own == Some(*target)).chain([offered]);
    // Where the memory is the later one, by the days that the model was shown, it may tell of the change.
    let at = offered.offer.record.provenance.at.map(Timestamp::midnight);
    let is_told = batch.texts.get(target).is_some_and(|(from, texts)| {
        at <= *from && quotes(&evidence, &texts.iter().map(|it| folded(it)).collect::<Vec<_>>())
    });
    let changes = matches!(verdict, Verdict::Replaces { .. } | Verdict::Partly);
    if changes && !is_told && !shown.any(|it| it.shows(&evidence)) {
        let problem = "evidence: not in the `claim`, `words` or `beside` of these records; without such words no supersede and no amend";
        return Err(("unproven-change", problem.to_owned()));
    }
    Ok((Some(*target), verdict))
}

#[derive(Clone, Debug)]
struct OfferedRecord {
    offer: Offer,
    /// The memories that it may touch, by their short ids.
    targets: Vec<(String, MemoryId)>,
}

impl OfferedRecord {
    /// Memories of the batch that it may touch although no words led to them.
    fn further<'a>(&self, batch: &'a PairBatch) -> impl Iterator<Item = &'a (String, MemoryId)> {
        let own = self.offer.own;
        batch.shown.iter().filter(move |(_, memory)| own.is_some_and(|own| own != *memory))
    }

    /// True if `quote`, which is folded, was shown.
    fn shows(&self, quote: &str) -> bool {
        let Offer { record, beside, .. } = &self.offer;
        let evidence = record.evidence.iter().map(|it| it.words.as_str());
        let claim = record.claim.strings().into_iter().map(|(_, text)| text);
        let shown = evidence.chain(claim).chain(beside.iter().map(|said| said.words.as_str()));
        // The statements beside it are shown behind their speakers.
        let is_by_speaker = |said: &NearbyStatement| {
            let bare = quote.strip_prefix(&format!("{}: ", said.speaker.name()));
            bare.is_some_and(|bare| quotes(bare, &[folded(said.words.as_str())]))
        };
        quotes(quote, &shown.map(folded).collect::<Vec<_>>()) || beside.iter().any(is_by_speaker)
    }

    /// True if the first answer by a person is not a refusal.
    fn is_agreed(&self) -> bool {
        let mut said = self.offer.beside.iter();
        let answer = said.find(|it| it.after && it.speaker == Speaker::Person);
        answer.is_some_and(|it| !says_no(&folded(it.words.as_str())))
    }
}

/// True if the parts of `quote`, which is folded, are in `texts`. Dots in it stand for omitted text.
fn quotes(quote: &str, texts: &[String]) -> bool {
    let quote = quote.replace("...", "…");
    let parts: Vec<&str> = quote.split('…').map(str::trim).filter(|it| !it.is_empty()).collect();
    let is_long = parts.iter().map(|part| part.len()).sum::<usize>() >= EVIDENCE_BYTES_MIN;
    // A short message counts as a whole, as in "do it".
    let is_whole = || texts.iter().any(|words| !quote.is_empty() && words.trim() == quote);
    (is_long || is_whole())
        && parts.iter().all(|part| texts.iter().any(|words| words.contains(part)))
}

/// Records and memories of one request, under short ids that are valid only in the batch.
#[derive(Clone, Debug)]
pub(crate) struct PairBatch {
    records: Vec<OfferedRecord>,
    /// Every memory of the batch with its short id, and those of its new records with theirs.
    shown: Vec<(String, MemoryId)>,
    texts: ShownTexts,
    about: BTreeSet<Digest>,
    pub(super) text: Redacted,
}

/// Since when each memory holds, and its texts as they are shown.
type ShownTexts = BTreeMap<MemoryId, (Option<Timestamp>, Vec<String>)>;

/// A record, the memories that it may touch, and the statements near it.
#[derive(Clone, Debug)]
struct Offer {
    record: Record,
    /// Its own memory if the record is new: it may then touch any other memory of the batch.
    own: Option<MemoryId>,
    targets: Vec<Memory>,
    beside: Vec<NearbyStatement>,
}

impl PairBatch {
    /// Splits the batch in two for a model with a smaller context; `None` for a single record.
    pub(crate) fn halves(&self) -> Option<[PairBatch; 2]> {
        let (first, second) = self.records.split_at(self.records.len() / 2);
        let half = |records: &[OfferedRecord]| {
            let mut draft = Draft::default();
            records.iter().for_each(|it| draft.add(it.offer.clone()));
            // The model has no room for more.
            draft.finish(&Further::default())
        };
        Some([half(first)?, half(second)?])
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Ids of all records and memories in the batch, and of those memories' records, which may not
    /// be stored yet.
    pub(crate) fn about(&self) -> Vec<Digest> {
        self.about.iter().copied().collect()
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.records.iter().map(|it| it.offer.record.id)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (RecordId, MemoryId)> + '_ {
        self.records.iter().flat_map(|it| {
            let record = it.offer.record.id;
            it.targets.iter().map(move |(_, memory)| (record, *memory))
        })
    }
}

/// Pairs that are undecided after a plan.
#[derive(Clone, Copy)]
pub(crate) struct Undecided<'a> {
    pub plan: &'a Plan,
    pub records: &'a [Record],
    pub earlier: &'a [OpenPair],
    pub memories: &'a Memories,
    /// Earlier questions to a model.
    pub asked: &'a Asked,
}

/// Pairs and new records that a model was asked about, or is not to be asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub pairs: BTreeSet<(RecordId, MemoryId)>,
    pub records: BTreeSet<RecordId>,
}

impl Undecided<'_> {
    /// Batches of the pairs that were not asked about yet, those of earlier plans first. `beside`
    /// has the statements near each record.
    pub(crate) fn batches(
        &self,
        beside: &BTreeMap<RecordId, Vec<NearbyStatement>>,
    ) -> Vec<PairBatch> {
        let (mut batches, mut draft) = (Vec::new(), Draft::default());
        let after = self.plan.after();
        let further = Further::of(self.further(&after));
        for (record, own, targets) in self.offers(&after, &further.newest) {
            if draft.is_full() {
                batches.extend(std::mem::take(&mut draft).finish(&further));
            }
            let beside = beside.get(&record.id).cloned().unwrap_or_default();
            let targets = targets.into_iter().cloned().collect();
            draft.add(Offer { record: record.clone(), own, targets, beside });
        }
        batches.extend(draft.finish(&further));
        batches
    }

    /// Records that are to be asked about.
    pub(crate) fn open_records(&self) -> Vec<Record> {
        let after = self.plan.after();
        let further = self.further(&after);
        self.offers(&after, &further).into_iter().map(|(record, ..)| record.clone()).collect()
    }

    /// Active memories, newest first. Batches show some of them, because words do not find all that a record touches.
    fn further<'b>(&'b self, after: &'b MemoryMap) -> Vec<&'b Memory> {
        let stored = self.memories.loaded().values().filter(|it| !after.contains_key(&it.id));
        let all = stored.chain(after.values());
        let mut newest: Vec<&Memory> = all.filter(|it| it.state == MemoryState::Active).collect();
        newest.sort_by_key(|it| std::cmp::Reverse((it.valid_from, it.id)));
        newest
    }

    fn offers<'b>(
        &'b self,
        after: &'b MemoryMap,
        further: &[&Memory],
    ) -> Vec<(&'b Record, Option<MemoryId>, Vec<&'b Memory>)> {
        let asked = &self.asked.pairs;
        let by_id: BTreeMap<RecordId, &Record> =
            self.records.iter().map(|it| (it.id, it)).collect();
        let find = |id: MemoryId| after.get(&id).or_else(|| self.memories.get(id));
        let mut open: BTreeMap<RecordId, Vec<&Memory>> = BTreeMap::new();
        // A part that a verdict changed was judged, whether or not the pair was asked about.
        let fresh = |left: &&LeftOpen| {
            !is_partly(&left.rule) && !asked.contains(&(left.record, left.memory))
        };
        for left in self.plan.left_open.iter().filter(fresh) {
            open.entry(left.record).or_default().extend(find(left.memory));
        }
        let mut offers: Vec<(&Record, Option<MemoryId>, Vec<&Memory>)> = Vec::new();
        for pair in self.earlier.iter().filter(|it| !asked.contains(&(it.record.id, it.memory))) {
            let Some(memory) = find(pair.memory) else { continue };
            match offers.last_mut().filter(|(record, ..)| record.id == pair.record.id) {
                Some((.., targets)) => targets.push(memory),
                None => offers.push((&pair.record, None, vec![memory])),
            }
        }
        for operation in &self.plan.operations {
            let Some(record) = by_id.get(&operation.record) else { continue };
            let own = Memory::id_of(self.memories.namespace(), record.id);
            let is_new = operation.disposition.home() == Some(own);
            let is_added = operation.disposition == Disposition::Add { memory: own };
            let at = record.provenance.at;
            let earlier = |it: &&Memory| it.id != own && (at.is_none() || it.valid_from <= at);
            let is_asked = self.asked.records.contains(&record.id);
            let tells_day = || record.claim.kind() == ClaimKind::Decision && may_end(record);
            let is_later = || further.iter().rev().any(earlier);
            let fresh = is_added && !is_asked && (is_later() || tells_day());
            let targets = open.remove(&operation.record).or_else(|| fresh.then(Vec::new));
            offers.extend(targets.map(|targets| (*record, is_new.then_some(own), targets)));
        }
        offers
    }
}

/// Active memories, newest first, and their words.
#[derive(Default)]
struct Further<'a> {
    newest: Vec<&'a Memory>,
    index: Index,
}

impl<'a> Further<'a> {
    fn of(newest: Vec<&'a Memory>) -> Further<'a> {
        let mut index = Index::default();
        newest.iter().for_each(|it| index.insert(it.id, &SearchKeys::of(&it.current_claim())));
        Further { newest, index }
    }
}

/// A record or memory as a model sees it. A memory that was not found by words has only its headline.
#[derive(Default, Serialize)]
struct ShownLine<'a> {
    id: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Speaker>,
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<Cow<'a, Claim>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    says: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    /// Record of the batch that a memory was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may_touch: Option<Vec<&'a str>>,
}

impl<'a> ShownLine<'a> {
    fn new(id: &'a str, kind: ClaimKind, at: Option<Timestamp>) -> ShownLine<'a> {
        let day = at.map(Timestamp::day);
        ShownLine { id, kind: kind.name(), day, ..ShownLine::default() }
    }

    fn of_memory(id: &'a str, memory: &'a Memory, of: Option<String>) -> ShownLine<'a> {
        ShownLine {
            by: Some(memory.said_by),
            claim: Some(memory.current_claim()),
            stage: Some(memory.stage.name()),
            of,
            ..ShownLine::new(id, memory.claim.kind(), memory.valid_from)
        }
    }

    /// Has the stage of an attempt that failed, or of a request or question that is not open.
    fn of_further(id: &'a str, memory: &'a Memory) -> ShownLine<'a> {
        let kind = memory.claim.kind();
        let usual = match kind {
            ClaimKind::Decision | ClaimKind::Attempt => Stage::Decided,
            ClaimKind::Discussion | ClaimKind::Request => Stage::Proposed,
        };
        ShownLine {
            says: Some(shown_words(memory)),
            stage: Some(memory.stage).filter(|it| *it != usual).map(Stage::name),
            ..ShownLine::new(id, kind, memory.valid_from)
        }
    }
}

/// A message as a model sees it.
#[derive(Serialize)]
struct ShownMessage<'a> {
    id: &'a str,
    said: &'a str,
}

/// Words of a memory that is shown in short.
fn shown_words(memory: &Memory) -> &str {
    truncate::letters(memory.words(), FURTHER_LETTERS_MAX)
}

/// One line of JSON, so that no text can imitate another record; `None` if it is too long.
fn shown_line(shown: &impl Serialize) -> Option<String> {
    serde_json::to_string(shown).ok().filter(|line| line.len() <= SHOWN_BYTES_MAX)
}

#[derive(Default)]
struct Draft {
    records: Vec<OfferedRecord>,
    shown: BTreeMap<MemoryId, String>,
    /// Messages, behind their speakers, with their short ids.
    said: BTreeMap<String, String>,
    texts: ShownTexts,
    about: BTreeSet<Digest>,
    text: String,
    tokens: Tokens,
}

impl Draft {
    fn is_full(&self) -> bool {
        self.records.len() == BATCH_RECORDS_MAX || self.tokens > FULL_TOKENS
    }

    fn push(&mut self, line: &str) {
        self.tokens = self.tokens.saturating_add(estimate_tokens(line));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Short ids of messages, and those messages that are not shown yet, with theirs.
    fn hear(&self, beside: &[NearbyStatement]) -> (Vec<String>, BTreeMap<String, String>) {
        let mut new = BTreeMap::new();
        let id_of = |it: &NearbyStatement| {
            let said = format!("{}: {}", it.speaker.name(), it.words.as_str());
            let next = format!("S{}", self.said.len() + new.len() + 1);
            match self.said.get(&said) {
                Some(id) => id.clone(),
                None => new.entry(said).or_insert(next).clone(),
            }
        };
        let ids = beside.iter().map(id_of).collect();
        (ids, new)
    }

    fn note(&mut self, memory: &Memory, texts: Vec<String>) {
        self.texts.entry(memory.id).or_insert((memory.valid_from, texts));
        self.about.insert(memory.id.0);
        self.about.extend(memory.sources.iter().take(SOURCES_MAX).map(|source| source.0));
    }

    fn add(&mut self, offer: Offer) {
        let Offer { record, own, targets: memories, beside } = &offer;
        let short = format!("R{}", self.records.len() + 1);
        let (mut lines, mut fresh, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for memory in memories {
            if let Some(id) = self.shown.get(&memory.id) {
                targets.push((id.clone(), memory.id));
                continue;
            }
            let id = format!("M{}", self.shown.len() + fresh.len() + 1);
            let of = self.records.iter().position(|it| it.offer.own == Some(memory.id));
            let of = of.map(|at| format!("R{}", at + 1));
            let Some(line) = shown_line(&ShownLine::of_memory(&id, memory, of)) else { continue };
            lines.push(line);
            fresh.push((memory.id, id.clone()));
            targets.push((id, memory.id));
        }
        let (messages, heard) = self.hear(beside);
        let shown = ShownLine {
            by: Some(said_by(record)),
            claim: Some(Cow::Borrowed(&record.claim)),
            words: record.evidence.iter().map(|it| it.words.as_str()).collect(),
            beside: messages.iter().map(String::as_str).collect(),
            may_touch: Some(targets.iter().map(|(id, _)| id.as_str()).collect()),
            ..ShownLine::new(&short, record.claim.kind(), record.provenance.at)
        };
        let is_asked = own.is_some() || !targets.is_empty();
        let Some(line) = shown_line(&shown).filter(|_| is_asked) else { return };
        lines.push(line);
        let said = heard.iter().filter_map(|(said, id)| shown_line(&ShownMessage { id, said }));
        let lines: Vec<String> = said.chain(lines).collect();
        lines.iter().for_each(|line| self.push(line));
        self.said.extend(heard);
        self.shown.extend(fresh);
        self.about.insert(record.id.0);
        for memory in memories {
            let texts = memory.current_claim();
            let texts = texts.strings().into_iter().map(|(_, text)| text.to_owned()).collect();
            self.note(memory, texts);
        }
        self.records.push(OfferedRecord { offer, targets });
    }

    /// Adds lines of those `further` memories that are not shown yet, neither as a memory nor as a record, and not newer
    /// than the new records: those nearest to them first, then those that are open, then decisions, each the newest
    /// first. Nothing more happens to a wish that was fulfilled.
    fn finish(mut self, further: &Further<'_>) -> Option<PairBatch> {
        let new = self.records.iter().map(|it| &it.offer).filter(|it| it.own.is_some());
        let latest = new.clone().map(|it| it.record.provenance.at).max();
        let own: BTreeSet<MemoryId> = new.filter_map(|it| it.own).collect();
        let newer = match latest {
            None => further.newest.len(),
            Some(None) => 0,
            Some(at) => further.newest.partition_point(|it| it.valid_from > at),
        };
        let older = further.newest.iter().copied().skip(newer);
        let shown = |it: &&Memory| own.contains(&it.id) || self.shown.contains_key(&it.id);
        let older = older.filter(|it| !shown(it) && !it.is_fulfilled());
        let mut older: Vec<&Memory> = older.collect();
        let ids: BTreeSet<MemoryId> = older.iter().map(|it| it.id).collect();
        let searches = self.records.iter().map(|it| SearchKeys::of(&it.offer.record.claim));
        let near: BTreeSet<MemoryId> =
            searches.flat_map(|it| further.index.nearest(&it, &ids, FURTHER_NEAREST)).collect();
        older.sort_by_key(|it| {
            (!near.contains(&it.id), !it.is_open(), it.claim.kind() != ClaimKind::Decision)
        });
        let mut left = FURTHER_TOKENS_MAX.min(BATCH_TOKENS_MAX.saturating_sub(self.tokens));
        for memory in older.into_iter().take(FURTHER_MAX) {
            let id = format!("M{}", self.shown.len() + 1);
            let line = shown_line(&ShownLine::of_further(&id, memory));
            let Some(line) = line.filter(|it| estimate_tokens(it) <= left) else { continue };
            left -= estimate_tokens(&line);
            self.push(&line);
            self.note(memory, vec![shown_words(memory).to_owned()]);
            self.shown.insert(memory.id, id);
        }
        // Claims and evidence come from the store, which holds only redacted text.
        let text = Redacted::reopened(self.text.trim_end().to_owned());
        let Draft { records, shown, texts, about, .. } = self;
        let new = (1..).zip(&records);
        let new = new.filter_map(|(n, it): (usize, _)| Some((format!("R{n}"), it.offer.own?)));
        let shown = shown.into_iter().map(|(memory, id)| (id, memory)).chain(new).collect();
        (!records.is_empty()).then_some(PairBatch { records, shown, texts, about, text })
    }
}

#[cfg(test)]
#[path = "adjudication_test.rs"]
mod tests;
