//! Consolidates the memory of a namespace: takes its lease, plans, asks a model about pairs that no rule decides, and
//! applies the plan in one transaction. Does not touch files.

use super::adjudicate::{Adjudicator, AskMode, Halt, ModelUsage, Progress};
use super::blocking;
use super::lookup::applied_plans;
use crate::config::Thresholds;
use crate::consolidate::{
    Asked, Draft, Memories, NearbyStatement, OpenPair, PairBatch, PersonVerdict, Undecided,
    UnsettledPair, Verdicts, Withdrawn, consolidate, decide, looked_up_keys, one_after_another,
    rests_on_nothing_else, withdraw, withdraw_first,
};
use crate::domain::{
    ClaimKind, Disposition, Evidence, Finding, LeftOpen, Memory, MemoryId, MemoryMap, Plan, Record,
    RecordId, Settlement, Severity, Speaker, Timestamp,
};
use crate::store::{
    AskedPair, Backlog, HeldLease, LeaseRequest, NamespaceLease, PrefixLookup, SpokenEntry, Store,
    StoreResult, StoredOpenPair, StoredPlan,
};
use crate::text::truncate;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of records in one plan; that many new ones take 900 MB. The next plan takes the rest.
const PLAN_RECORDS_MAX: u32 = 100_000;
/// Maximum number of earlier pairs that one plan asks about: some twenty batches. The next plan takes the rest.
const PLAN_PAIRS_MAX: usize = 400;
/// Maximum number of open pairs read for one namespace.
const PAIRS_MAX: u32 = 10_000;
/// Maximum number of memories of a namespace that is loaded whole, so that a model sees the newest of them.
const SHOWN_WHOLE_MAX: u64 = 500;
/// Maximum number of plan-and-ask rounds about all records; a verdict may open new pairs.
const ROUNDS_MAX: usize = 4;
/// Minimum number of records that a round adds, so that short sessions share a batch.
const ROUND_RECORDS_MIN: usize = 10;
/// Maximum number of rounds that add records; each plans anew.
const ROUNDS_ADDING_MAX: usize = 50;

/// Window of entries around a record's evidence in which messages are looked up.
const CONTEXT_BEFORE: u32 = 6;
const CONTEXT_AFTER: u32 = 12;
/// Maximum number of messages around a record shown to the model: in total, and before its evidence.
const CONTEXT_MESSAGES_MAX: usize = 5;
const CONTEXT_MESSAGES_BEFORE: usize = 1;
/// Maximum length of each, in characters.
const CONTEXT_LETTERS_MAX: usize = 400;

#[derive(Clone)]
pub(crate) struct Consolidator {
    pub store: Store,
    /// Name of this process in leases.
    pub holder: String,
    pub clock: fn() -> Timestamp,
    /// True to wait some seconds for a lease that another process holds.
    pub waits: bool,
    /// Decides pairs that no rule decides; without it, they stay open.
    pub adjudicator: Option<Arc<Adjudicator>>,
}

/// Result of an attempt to change a namespace's memory.
#[derive(Debug)]
pub(crate) enum ConsolidationOutcome {
    /// The plan was applied, or would be on a dry run.
    Done(Box<PlannedConsolidation>),
    /// Another process holds the namespace lease.
    Busy,
    /// These memories were changed by another process meanwhile; nothing was written.
    Moved(Vec<MemoryId>),
    /// The model cannot be asked, so no plan was made. Answers so far are journaled; the records wait.
    Halted(Halt),
}

#[derive(Debug)]
pub(crate) enum DecisionOutcome {
    Done(Box<Plan>),
    Busy,
    /// The verdict does not apply; the message says why.
    Refused(String),
}

#[derive(Debug)]
pub(crate) enum RedoOutcome {
    /// The person's verdict is in force again.
    Applied,
    /// So many records are staged again.
    Released(u64),
    Busy,
    /// The memories of the verdict have changed since; nothing was written.
    Moved,
}

#[derive(Debug)]
pub(crate) struct PlannedConsolidation {
    pub plan: Plan,
    pub findings: Vec<Finding>,
    /// The memories that it is based on, as they are after the plan.
    pub memories: MemoryMap,
    /// True if more records or pairs wait than one plan takes.
    pub goes_on: bool,
    pub usage: ModelUsage,
    /// Pairs still open: those of this plan, and those of earlier plans that the model was to decide.
    pub left_open: Vec<LeftOpen>,
    /// Questions whose answers decided nothing.
    undecided: Vec<AskedPair>,
}

struct PlanInput {
    memories: Memories,
    records: Vec<Record>,
    /// Pairs that earlier plans left open.
    open: Vec<OpenPair>,
    goes_on: bool,
    /// True if more pairs are open than one plan asks about.
    more_open: bool,
    /// Records that a newer reading of their conversation replaced. If there are any, `plans` has all plans not undone.
    outdated: Vec<Withdrawn>,
    plans: Vec<Plan>,
}

impl Consolidator {
    /// Returns the namespaces that are due under `thresholds`; `None` if no namespace has a backlog.
    pub(super) async fn due(&self, thresholds: &Thresholds) -> StoreResult<Option<Vec<String>>> {
        let now = (self.clock)();
        let backlog = self.store.backlog().await?;
        if backlog.is_empty() {
            return Ok(None);
        }
        let due = backlog.into_iter().filter(|it| is_due(it, thresholds, now));
        Ok(Some(due.map(|it| it.namespace).collect()))
    }

    /// Plans for the waiting records of `namespace` without changing memory. The model's answers are journaled, so that
    /// applying the plan asks nothing again.
    pub(crate) async fn plan(&self, namespace: &str) -> StoreResult<ConsolidationOutcome> {
        // The lease makes only one of two processes pay for the same question.
        if self.adjudicator.as_ref().is_none_or(|it| it.mode == AskMode::Priced) {
            return self.planned(namespace).await;
        }
        let Some(held) = self.hold(namespace).await? else { return Ok(ConsolidationOutcome::Busy) };
        let planned = self.planned(namespace).await;
        held.release(None).await?;
        planned
    }

    async fn planned(&self, namespace: &str) -> StoreResult<ConsolidationOutcome> {
        let mut input = self.input(namespace).await?;
        let verdicts = self.agreements(&input.records).await?;
        let mut progress = Progress { verdicts, ..Progress::default() };
        if let Some(adjudicator) = &self.adjudicator {
            let mut later = in_rounds(std::mem::take(&mut input.records)).into_iter();
            let rounds = later.len().max(1) + ROUNDS_MAX - 1;
            for _ in 0..rounds {
                input.records.extend(later.next().into_iter().flatten());
                let draft;
                (input, draft) = self.complete(input, &progress).await?;
                let so_far = progress.clone();
                let open = blocking(move || OpenQuestions::of(input, draft, &so_far)).await;
                let beside = self.surrounding_messages(open.undecided().open_records()).await?;
                let batches;
                (input, batches) = blocking(move || open.batches(&beside)).await;
                if batches.is_empty() && later.len() > 0 {
                    continue;
                }
                if batches.is_empty() || progress.is_over {
                    break;
                }
                match adjudicator.ask(namespace, batches, &mut progress).await? {
                    Ok(()) => {}
                    Err(Halt::Needs(line)) if adjudicator.mode == AskMode::Optional => {
                        let now =
                            "rules alone decided, and a later run asks a model about open pairs";
                        progress.note("by-rule", format!("{line}; {now}"));
                        progress.has_unanswered = true;
                        break;
                    }
                    Err(halt) => return Ok(ConsolidationOutcome::Halted(halt)),
                }
            }
            input.records.extend(later.flatten());
        }
        let (input, draft) = self.complete(input, &progress).await?;
        let so_far = progress.clone();
        let mut planned = blocking(move || finished(input, draft, so_far)).await;
        if let Some(adjudicator) = &self.adjudicator {
            let settled = settled(&planned.plan);
            let is_settled = |pair| settled.get(pair).is_some_and(Option::is_none);
            let undecided = progress.asked.pairs.iter().filter(|pair| !is_settled(*pair));
            let undecided = undecided.filter_map(|(record, memory)| {
                let question = adjudicator.spec.question(*record, planned.memories.get(memory)?);
                Some(AskedPair { record: *record, memory: *memory, question })
            });
            planned.undecided = undecided.collect();
        }
        Ok(ConsolidationOutcome::Done(Box::new(planned)))
    }

    async fn input(&self, namespace: &str) -> StoreResult<PlanInput> {
        let store = &self.store;
        let records = store.waiting_records(namespace, PLAN_RECORDS_MAX).await?;
        let outdated = store.outdated_records(namespace, PLAN_RECORDS_MAX).await?;
        let goes_on = records.len().max(outdated.len()) == PLAN_RECORDS_MAX as usize;
        let outdated: Vec<Withdrawn> =
            outdated.into_iter().map(|(record, memory)| Withdrawn { record, memory }).collect();
        let plans = match outdated.is_empty() {
            true => Vec::new(),
            false => self.standing_plans(namespace).await?,
        };
        let mut pairs = match &self.adjudicator {
            Some(_) => store.open_pairs(namespace, false, PAIRS_MAX).await?,
            None => Vec::new(),
        };
        let mut memories = self.memories(namespace, &records, outdated.is_empty()).await?;
        if self.adjudicator.is_some() && !records.is_empty() && memories.len() <= SHOWN_WHOLE_MAX {
            let all = self.store.memories(Some(namespace)).await?;
            all.into_values().for_each(|memory| memories.load(memory));
        }
        let own = records.iter().map(|it| Memory::id_of(namespace, it.id));
        let ids = own.chain(pairs.iter().flat_map(|it| [it.home, it.memory]));
        self.load(&mut memories, ids.collect()).await?;
        // Drops undone pairs and those whose question was already asked without a decision.
        pairs.retain(|pair| {
            let memory = memories.get(pair.memory);
            let now = self.adjudicator.as_ref().zip(memory);
            now.is_some_and(|(adjudicator, it)| {
                !pair.is_undone && pair.asked != Some(adjudicator.spec.question(pair.record, it))
            })
        });
        let more_open = pairs.len() > PLAN_PAIRS_MAX;
        pairs.truncate(PLAN_PAIRS_MAX);
        let open = self.open(&memories, &pairs).await?;
        Ok(PlanInput { memories, records, open, goes_on, more_open, outdated, plans })
    }

    /// Loads the part of the memory index that `records` need, or all memories if there is no index yet or
    /// `is_indexed` is false.
    async fn memories(
        &self,
        namespace: &str,
        records: &[Record],
        is_indexed: bool,
    ) -> StoreResult<Memories> {
        if is_indexed {
            let keys = looked_up_keys(records);
            if let Some(index) = self.store.memory_index(namespace, keys).await? {
                return Ok(Memories::indexed(namespace, index));
            }
        }
        let known = self.store.memories(Some(namespace)).await?;
        let namespace = namespace.to_owned();
        // Takes seconds for a hundred thousand memories.
        Ok(blocking(move || Memories::of(namespace, &known)).await)
    }

    /// Drafts a plan and loads the memories that it misses, until none are missing.
    async fn complete(
        &self,
        mut input: PlanInput,
        progress: &Progress,
    ) -> StoreResult<(PlanInput, Draft)> {
        loop {
            let verdicts = progress.verdicts.clone();
            let mut draft;
            (input, draft) = blocking(move || {
                let PlanInput { memories, records, open, .. } = &input;
                let draft = Draft::of(records, open, memories, &verdicts);
                (input, draft)
            })
            .await;
            let wanted = std::mem::take(&mut draft.missing);
            if !self.load(&mut input.memories, wanted).await? {
                return Ok((input, draft));
            }
        }
    }

    /// Loads the stored memories among `wanted` that are not loaded yet; returns false if there are none.
    async fn load(
        &self,
        memories: &mut Memories,
        mut wanted: BTreeSet<MemoryId>,
    ) -> StoreResult<bool> {
        wanted.retain(|id| memories.get(*id).is_none());
        let found = self.store.memories_of(wanted).await?;
        let is_any = !found.is_empty();
        found.into_iter().for_each(|memory| memories.load(memory));
        Ok(is_any)
    }

    /// The plans of a namespace that were not undone.
    pub(super) async fn standing_plans(&self, namespace: &str) -> StoreResult<Vec<Plan>> {
        let plans = applied_plans(&self.store, Some(namespace)).await?;
        Ok(plans.into_iter().map(|it| it.plan).collect())
    }

    async fn open(&self, known: &Memories, pairs: &[StoredOpenPair]) -> StoreResult<Vec<OpenPair>> {
        let first = |pair: &StoredOpenPair| known.get(pair.memory)?.sources.first().copied();
        let ids = pairs.iter().flat_map(|pair| [Some(pair.record), first(pair)]);
        let ids: BTreeSet<RecordId> = ids.flatten().collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let records = self.store.records_of(ids.into_iter().collect()).await?;
        let by_id: BTreeMap<RecordId, Record> =
            records.into_iter().map(|record| (record.id, record)).collect();
        let open = pairs.iter().filter_map(|pair| {
            Some(OpenPair {
                record: by_id.get(&pair.record)?.clone(),
                home: pair.home,
                memory: pair.memory,
                first: first(pair).and_then(|id| by_id.get(&id).cloned()),
                rule: pair.rule.clone(),
            })
        });
        Ok(open.collect())
    }

    /// Notes which decisions of an assistant a person accepted in the next message, which may be evidence as well.
    async fn agreements(&self, records: &[Record]) -> StoreResult<Verdicts> {
        let by_assistant = records.iter().filter_map(|record| {
            let mut record = record.clone();
            record.evidence.retain(|it| it.field == "chosen");
            let first = record.evidence.iter().min_by_key(|it| it.ordinal);
            let is_its = first.is_some_and(|it| it.speaker == Speaker::Assistant);
            is_its.then_some(record)
        });
        let beside = self.surrounding_messages(by_assistant.collect()).await?;
        let mut verdicts = Verdicts::none();
        beside.iter().for_each(|(record, beside)| verdicts.hear(*record, beside));
        Ok(verdicts)
    }

    /// Messages of people and agents around the evidence of `records`.
    async fn surrounding_messages(
        &self,
        records: Vec<Record>,
    ) -> StoreResult<BTreeMap<RecordId, Vec<NearbyStatement>>> {
        let around = |record: &Record| {
            let stated = || anchors(record.claim.kind(), &record.evidence);
            let (first, last) = (stated().min()?, stated().max()?);
            let part = first.saturating_sub(CONTEXT_BEFORE)..last.saturating_add(CONTEXT_AFTER);
            Some((record.id, first, (record.provenance.session, part)))
        };
        let around: Vec<_> = records.iter().filter_map(around).collect();
        let parts = around.iter().map(|(.., part)| part.clone()).collect();
        let said = self.store.spoken_entries_in(parts).await?;
        let beside =
            around.iter().zip(said).map(|((id, first, _), said)| (*id, nearest(*first, said)));
        Ok(beside.collect())
    }

    /// Plans and applies, under the lease of `namespace`.
    pub(crate) async fn run(&self, namespace: &str) -> StoreResult<ConsolidationOutcome> {
        let Some(held) = self.hold(namespace).await? else { return Ok(ConsolidationOutcome::Busy) };
        let done = self.plan_and_apply(&held.lease).await;
        let whole = matches!(&done, Ok(ConsolidationOutcome::Done(planned)) if !planned.goes_on);
        let left = held.release(whole.then(|| (self.clock)())).await;
        let outcome = done?;
        left.map(|()| outcome)
    }

    async fn plan_and_apply(&self, lease: &NamespaceLease) -> StoreResult<ConsolidationOutcome> {
        let outcome = self.planned(&lease.subject).await?;
        let ConsolidationOutcome::Done(planned) = outcome else { return Ok(outcome) };
        let asked = planned.undecided.as_slice();
        if !planned.plan.is_empty() {
            let applied =
                self.store.apply_plan(lease, &planned.plan, asked, (self.clock)()).await?;
            if let Err(moved) = applied {
                return Ok(ConsolidationOutcome::Moved(moved));
            }
        } else if !asked.is_empty() {
            self.store.note_asked(lease, asked.to_vec()).await?;
        }
        Ok(ConsolidationOutcome::Done(planned))
    }

    /// Undoes a plan, or refuses it: the time at which it was applied marks that.
    pub(crate) async fn undo(
        &self,
        stored: &StoredPlan,
        is_refusal: bool,
    ) -> StoreResult<ConsolidationOutcome> {
        let at = if is_refusal { stored.at } else { (self.clock)() };
        let namespace = &stored.plan.namespace;
        let Some(held) = self.hold(namespace).await? else { return Ok(ConsolidationOutcome::Busy) };
        let undone = self.store.undo_plan(&held.lease, &stored.plan, at).await;
        held.release(None).await?;
        if let Err(moved) = undone? {
            return Ok(ConsolidationOutcome::Moved(moved));
        }
        let touched = stored.plan.changes().into_iter().map(|it| it.memory);
        let memories = self.store.memories_of(touched.collect()).await?;
        Ok(ConsolidationOutcome::Done(Box::new(PlannedConsolidation {
            plan: stored.plan.clone(),
            findings: Vec::new(),
            memories: memories.into_iter().map(|it| (it.id, it)).collect(),
            goes_on: false,
            usage: ModelUsage::default(),
            left_open: stored.plan.left_open.clone(),
            undecided: Vec::new(),
        })))
    }

    pub(crate) async fn decide(
        &self,
        namespace: &str,
        verdict: PersonVerdict,
    ) -> StoreResult<DecisionOutcome> {
        let Some(held) = self.hold(namespace).await? else { return Ok(DecisionOutcome::Busy) };
        let decided = apply_verdict(&self.store, &held.lease, verdict, (self.clock)()).await;
        held.release(None).await?;
        decided
    }

    /// Applies an undone verdict of a person again, or returns the records of another plan to the backlog.
    pub(crate) async fn redo(&self, undone: &StoredPlan) -> StoreResult<RedoOutcome> {
        let (plan, now) = (&undone.plan, (self.clock)());
        let Some(held) = self.hold(&plan.namespace).await? else { return Ok(RedoOutcome::Busy) };
        let redone = if plan.is_verdict() {
            let applied = self.store.apply_plan(&held.lease, plan, &[], now).await;
            applied.map(|it| it.map_or(RedoOutcome::Moved, |()| RedoOutcome::Applied))
        } else {
            let released = self.store.release_undone(&held.lease, plan.id, now).await;
            released.map(RedoOutcome::Released)
        };
        held.release(None).await?;
        redone
    }

    pub(super) async fn hold(&self, namespace: &str) -> StoreResult<Option<HeldLease>> {
        let Consolidator { store, holder, clock, waits, adjudicator: _ } = self;
        store.hold_namespace(LeaseRequest { namespace, holder, clock: *clock, waits: *waits }).await
    }
}

/// Entries that state what a record is mainly about; further quotes of it may be from elsewhere. All windows of a
/// choice count, because an answer to a proposal follows the first; of other fields the best one.
fn anchors(kind: ClaimKind, evidence: &[Evidence]) -> impl Iterator<Item = u32> + '_ {
    let main: &[&str] = match kind {
        ClaimKind::Decision => &["chosen"],
        ClaimKind::Request => &["intent", "summary"],
        ClaimKind::Attempt => &["action", "result"],
        ClaimKind::Discussion => &[],
    };
    let of = |field: &'static str| evidence.iter().filter(move |it| it.field == field);
    let windows = if kind == ClaimKind::Decision { usize::MAX } else { 1 };
    let stated = main.iter().flat_map(move |field| of(field).take(windows));
    let is_stated = main.iter().any(|field| of(field).next().is_some());
    let all = evidence.iter().filter(move |_| !is_stated);
    stated.chain(all).map(|it| it.ordinal)
}

/// Selects the messages of `said` to show around evidence that begins in the entry `first`.
fn nearest(first: u32, mut said: Vec<SpokenEntry>) -> Vec<NearbyStatement> {
    said.retain(|it| {
        let is_speech = matches!(it.speaker, Speaker::Person | Speaker::Assistant);
        is_speech && !it.text.as_str().trim().is_empty()
    });
    let before = said.iter().filter(|it| it.ordinal < first).count();
    let shown = said.into_iter().skip(before.saturating_sub(CONTEXT_MESSAGES_BEFORE));
    let statement = |it: SpokenEntry| {
        let end = truncate::letters(it.text.as_str(), CONTEXT_LETTERS_MAX).len();
        let (words, after) = (it.text.cut(0..end), it.ordinal > first);
        NearbyStatement { speaker: it.speaker, words, after }
    };
    shown.take(CONTEXT_MESSAGES_MAX).map(statement).collect()
}

pub(super) async fn apply_verdict(
    store: &Store,
    lease: &NamespaceLease,
    verdict: PersonVerdict,
    now: Timestamp,
) -> StoreResult<DecisionOutcome> {
    let mut memories = MemoryMap::new();
    let mut wanted = verdict.memories();
    while let Some(id) = wanted.pop() {
        if let PrefixLookup::One(found) = store.memory(id.0.into()).await? {
            // The verdict may displace the memory that superseded this one.
            wanted.extend(found.superseded_by.filter(|by| !memories.contains_key(by)));
            memories.insert(id, *found);
        }
    }
    if let PersonVerdict::Retract { memory } = verdict {
        let mut ended = store.settled_by(&lease.subject, memory, PAIRS_MAX).await?;
        ended.extend(store.replaced_by(memory, PAIRS_MAX).await?);
        memories.extend(ended.into_iter().map(|it| (it.id, it)));
    }
    let open = store.open_pairs(&lease.subject, false, PAIRS_MAX).await?.into_iter();
    let open: Vec<UnsettledPair> = open
        .map(|StoredOpenPair { record, home, memory, .. }| UnsettledPair { record, home, memory })
        .collect();
    let stands = match verdict.memories()[..] {
        [one, other] => {
            let pair = (one.min(other), one.max(other));
            store.contradictions(&lease.subject).await?.contains(&pair)
        }
        _ => false,
    };
    if let Some(why) = verdict.in_force(&memories, &open).filter(|_| !stands) {
        return Ok(DecisionOutcome::Refused(why));
    }
    let plan = match decide(verdict, &memories, &open, now) {
        Ok(plan) => plan,
        Err(why) => return Ok(DecisionOutcome::Refused(why)),
    };
    Ok(match store.apply_plan(lease, &plan, &[], now).await? {
        Ok(()) => DecisionOutcome::Done(Box::new(plan)),
        Err(_) => DecisionOutcome::Busy,
    })
}

/// A plan that leaves pairs open; `excluded` are the pairs that are not asked about.
struct OpenQuestions {
    input: PlanInput,
    plan: Plan,
    excluded: Asked,
}

impl OpenQuestions {
    fn of(input: PlanInput, draft: Draft, progress: &Progress) -> OpenQuestions {
        let PlanInput { memories, outdated, .. } = &input;
        let plan = draft.plan;
        let mut excluded = progress.asked.clone();
        excluded.pairs.extend(&progress.skipped.pairs);
        excluded.records.extend(&progress.skipped.records);
        excluded.pairs.extend(settled(&plan).into_keys());
        // Memories that rest only on these records are about to be withdrawn.
        let gone: BTreeSet<RecordId> = outdated.iter().map(|it| it.record.id).collect();
        let goes =
            |id: MemoryId| memories.get(id).is_some_and(|it| rests_on_nothing_else(it, &gone));
        let left = plan.left_open.iter().filter(|it| goes(it.memory));
        excluded.pairs.extend(left.map(|it| (it.record, it.memory)));
        OpenQuestions { input, plan, excluded }
    }

    fn undecided(&self) -> Undecided<'_> {
        let PlanInput { memories, records, open, .. } = &self.input;
        Undecided { plan: &self.plan, records, earlier: open, memories, asked: &self.excluded }
    }

    fn batches(
        self,
        beside: &BTreeMap<RecordId, Vec<NearbyStatement>>,
    ) -> (PlanInput, Vec<PairBatch>) {
        let batches = self.undecided().batches(beside);
        (self.input, batches)
    }
}

/// Divides `records`, in order of time and without cutting what one session said at a time, into what each round adds:
/// later records are asked about in the state that the verdicts on earlier ones leave.
fn in_rounds(mut records: Vec<Record>) -> Vec<Vec<Record>> {
    let least = ROUND_RECORDS_MIN.max(records.len().div_ceil(ROUNDS_ADDING_MAX));
    records.sort_by_key(|it| (it.provenance.at.is_none(), it.provenance.at, it.provenance.session));
    let mut rounds: Vec<Vec<Record>> = Vec::new();
    for record in records {
        let is_other = |it: &Record| it.provenance.session != record.provenance.session;
        match rounds.last_mut() {
            Some(last) if last.len() < least || !last.last().is_some_and(is_other) => {
                last.push(record);
            }
            _ => rounds.push(vec![record]),
        }
    }
    rounds
}

/// The pairs of earlier plans that `plan` decides; if in part, by which rule.
fn settled(plan: &Plan) -> BTreeMap<(RecordId, MemoryId), Option<Cow<'static, str>>> {
    let settles = plan.operations.iter().filter_map(|it| {
        let Disposition::Settle { with, how, .. } = it.disposition else { return None };
        Some(((it.record, with), (how == Settlement::Partly).then(|| it.rule.clone())))
    });
    settles.collect()
}

/// Completes the last `draft`, which includes every verdict.
fn finished(input: PlanInput, draft: Draft, progress: Progress) -> PlannedConsolidation {
    let PlanInput { mut memories, records, open, goes_on, more_open, outdated, plans } = input;
    let Draft { mut plan, findings: refused, .. } = draft;
    let fresh = records.iter().map(|it| it.id).filter(|id| !memories.has_taken(*id));
    let fresh: Vec<RecordId> = fresh.collect();
    let usage = ModelUsage {
        records: fresh.len() as u64,
        refused: progress.usage.refused + refused.len() as u64,
        ..progress.usage
    };
    let mut findings = progress.findings;
    findings.extend(refused);
    if !progress.verdicts.is_empty() {
        let wrong = plan.check(&fresh, memories.loaded());
        // Should be impossible. If it happens, drop the verdicts rather than damage memory.
        if !wrong.is_empty() {
            findings.extend(wrong);
            let detail = "the verdicts led to a plan that breaks a rule; they are ignored";
            findings.push(Finding::new(Severity::Error, "verdicts-dropped", 0, detail));
            plan = consolidate(&records, &memories, &Verdicts::none()).0;
        }
    }
    if let Some(first) = withdraw_first(&plan, &outdated, memories.loaded(), &plans) {
        first.after().into_values().for_each(|it| memories.load(it));
        let next = Draft::of(&records, &open, &memories, &progress.verdicts).plan;
        let is_sound = next.check(&fresh, memories.loaded()).is_empty();
        first.before.iter().for_each(|it| memories.load(it.clone()));
        if is_sound {
            plan = one_after_another(first, next, memories.loaded());
        }
    }
    let plan = withdraw(plan, &outdated, memories.loaded(), plans);
    let settled = settled(&plan);
    let earlier = open.iter().filter_map(|it| {
        let (record, memory) = (it.record.id, it.memory);
        let rule = match settled.get(&(record, memory)) {
            None => it.rule.clone().into(),
            Some(rule) => rule.clone()?,
        };
        Some(LeftOpen { record, memory, rule })
    });
    let left_open = plan.left_open.iter().cloned().chain(earlier).collect();
    let mut after = memories.into_loaded();
    // Cannot fail: the plan was made from these memories.
    let _ = plan.apply(&mut after);
    PlannedConsolidation {
        plan,
        findings,
        memories: after,
        // Unanswered pairs are not asked again at once.
        goes_on: goes_on
            || (more_open && !progress.has_unanswered && !progress.asked.pairs.is_empty()),
        usage,
        left_open,
        undecided: Vec::new(),
    }
}

fn is_due(backlog: &Backlog, thresholds: &Thresholds, now: Timestamp) -> bool {
    let cooled = backlog.done_at.is_none_or(|at| at.after(thresholds.cool_down) <= now);
    let many = 0 < thresholds.records && thresholds.records <= backlog.records;
    let long = 0 < thresholds.bytes && thresholds.bytes <= backlog.bytes;
    let waits = !thresholds.idle.is_zero();
    let idle = waits && backlog.staged_at.after(thresholds.idle) <= now;
    backlog.records > 0 && cooled && (many || long || idle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        Claim, Digest, Match, PersonRequest, Provenance, RecordState, RunId, SessionId, SliceId,
    };
    use crate::privacy::Redacted;
    use std::time::Duration;

    #[test]
    fn messages_are_shown_around_what_a_record_is_mainly_about() {
        let of = |(field, ordinal): &(&str, u32)| Evidence {
            field: (*field).to_owned(),
            ordinal: *ordinal,
            line: 1,
            bytes: 0..2,
            speaker: Speaker::Person,
            name: None,
            found: Match::Overlap,
            words: Redacted::reopened("ok".to_owned()),
        };
        let check = |kind, evidence: &[(&str, u32)], expected: &[u32]| {
            let evidence: Vec<Evidence> = evidence.iter().map(of).collect();
            assert_eq!(anchors(kind, &evidence).collect::<Vec<_>>(), expected);
        };
        let tried = [("action", 22), ("result", 23), ("result", 6)];
        check(ClaimKind::Attempt, &tried, &[22, 23]);
        let asked = [("intent", 18), ("target", 2), ("summary", 24), ("summary", 3)];
        check(ClaimKind::Request, &asked, &[18, 24]);
        let chosen = [("chosen", 9), ("chosen", 7), ("rationale", 1)];
        check(ClaimKind::Decision, &chosen, &[9, 7]);
        check(ClaimKind::Decision, &[("rationale", 4)], &[4]);
        check(ClaimKind::Discussion, &[("topic", 5), ("points", 8)], &[5, 8]);
    }

    #[test]
    fn later_sessions_are_asked_about_after_earlier_ones_and_short_ones_together() {
        let sizes = |said: &[(u8, i64)]| {
            let record = |(session, at): &(u8, i64)| {
                let run = RunId(Digest::of(&["run"]));
                let claim = Claim::Request(PersonRequest {
                    intent: String::new(),
                    target: None,
                    summary: format!("{session} {at}"),
                });
                let provenance = Provenance {
                    namespace: "roofs".to_owned(),
                    session: SessionId(Digest::of(&[&session.to_string()])),
                    slice: SliceId(Digest::of(&["slice"])),
                    run,
                    entries: (0, 0),
                    at: Some(Timestamp(*at)),
                };
                let (id, evidence) = (Record::id_of(run, &claim), Vec::new());
                let state = RecordState::Staged;
                Record { id, claim, provenance, evidence, score: 1.0, state, reason: None }
            };
            let rounds = in_rounds(said.iter().map(record).collect());
            rounds.iter().map(Vec::len).collect::<Vec<_>>()
        };
        let of = |session: u8, times: std::ops::Range<i64>| times.map(move |at| (session, at));
        assert_eq!(sizes(&[]), [0; 0]);
        let said: Vec<_> = of(3, 40..52).chain(of(1, 0..12)).chain(of(2, 20..25)).collect();
        assert_eq!(sizes(&said), [12, 17], "two short of a round go together");
        let said: Vec<_> = of(1, 0..15).chain(of(2, 20..35)).chain(of(1, 40..41)).collect();
        assert_eq!(sizes(&said), [15, 15, 1], "in order of time");
        let session = |it: u8| of(it, i64::from(it) * 20..i64::from(it) * 20 + 10);
        let many: Vec<_> = (0..100).flat_map(session).collect();
        assert_eq!(sizes(&many).len(), ROUNDS_ADDING_MAX);
    }

    #[test]
    fn records_wait_until_they_are_many_or_long_or_nothing_came_and_it_has_cooled_down() {
        const SECS: fn(u64) -> Duration = Duration::from_secs;
        let thresholds =
            Thresholds { records: 10, bytes: 1_000, idle: SECS(60), cool_down: SECS(30) };
        let backlog = Backlog {
            namespace: "roofs".to_owned(),
            records: 3,
            bytes: 300,
            staged_at: Timestamp(100_000),
            done_at: None,
        };
        let check = |backlog: Backlog, now, expected| {
            assert_eq!(
                is_due(&backlog, &thresholds, Timestamp(now)),
                expected,
                "{backlog:?} {now}"
            );
        };
        check(backlog.clone(), 100_001, false);
        check(Backlog { records: 10, ..backlog.clone() }, 100_001, true);
        check(Backlog { bytes: 1_000, ..backlog.clone() }, 100_001, true);
        check(backlog.clone(), 160_000, true);
        check(Backlog { records: 0, ..backlog.clone() }, 160_000, false);
        let done = Backlog { records: 10, done_at: Some(Timestamp(90_000)), ..backlog.clone() };
        check(done.clone(), 119_999, false);
        check(done, 120_000, true);
        let never = Thresholds { records: 0, bytes: 0, idle: SECS(0), cool_down: SECS(0) };
        let many = Backlog { records: u64::MAX, bytes: u64::MAX, ..backlog };
        assert!(!is_due(&many, &never, Timestamp(i64::MAX)));
    }
}
