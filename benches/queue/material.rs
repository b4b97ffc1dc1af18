//! Small sessions, jobs and what they come to.

use annalist::{
    Attempt, Branch, Claim, CoverageState, Digest, Entry, EntryKind, Evidence, EvidenceMatch,
    Format, Job, JobId, OutputMode, Provenance, Record, RecordState, RunId, RunState, Session,
    SliceId, Speaker, Timestamp, Usage,
};
use annalist::{ConversationState, CoveredEntry, Intake, SessionProgress, Staging, StoreRun};
use annalist::{Redacted, RedactionReport};

/// A session of `jobs` jobs of two entries.
pub(crate) fn intake(number: u32, jobs: u32) -> Intake {
    Intake {
        growth: SessionProgress::default(),
        anew: None,
        entries: (0..2 * jobs).map(entry).collect(),
        known: 2 * jobs,
        goes_on: false,
        jobs: (0..jobs).map(|index| job(number, index)).collect(),
        gathering: None,
        priority: 0,
        document: None,
        findings: Vec::new(),
        masked: RedactionReport::default(),
        remembered: Some(remembered(2 * jobs)),
        at: Timestamp(0),
        session: session(number),
    }
}

/// What is remembered of a session of a file: a turn of its dialog.
fn remembered(next: u32) -> ConversationState {
    let turn = r#"{"turn_number":1,"user_intent":"User requested: keep the queue in the store, since one…","action_taken":"I responded with chat.","pending_items":[],"timestamp":null,"entries":[0,1]}"#;
    ConversationState {
        settings: Digest::of(&["settings"]),
        next,
        dialog: format!(r#"{{"turns":[{turn}],"open":null,"ended":1,"next":{next}}}"#),
        conversation: String::new(),
    }
}

/// The first job of a session.
pub(crate) fn job_id(number: u32) -> JobId {
    job(number, 0).id
}

fn session(number: u32) -> Session {
    let name = format!("session-{number}");
    Session {
        id: Session::id_of("bench", Format::Openai, &name),
        namespace: "bench".to_owned(),
        format: Format::Openai,
        native_id: Redacted::reopened(name),
        path: "bench.jsonl".to_owned(),
        title: None,
        cwd: None,
        parent: None,
        branches: None,
        started_at: Some(Timestamp(0)),
    }
}

fn job(number: u32, index: u32) -> Job {
    let slice = Digest::of(&["slice", &number.to_string(), &index.to_string()]);
    Job {
        id: JobId(Digest::of(&["job", &slice.to_string()])),
        slice: SliceId(slice),
        index,
        first: (2 * index, 0),
        last: (2 * index + 1, 0),
        tokens: 40,
        cut: format!("[{index},[[{},{}]]]", 2 * index, 2 * index + 1),
        context: None,
    }
}

fn entry(ordinal: u32) -> Entry {
    let (speaker, kind) = match ordinal % 2 {
        0 => (Speaker::Person, EntryKind::Prompt),
        _ => (Speaker::Assistant, EntryKind::Text),
    };
    let text =
        format!("Line {ordinal}: we keep the queue in the store, since one thing less runs then.");
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: None,
        speaker,
        kind,
        branch: Branch::Active,
        text: Redacted::reopened(text),
        tool: None,
        outcome: None,
        exit_code: None,
        at: None,
        skip: None,
    }
}

/// What the first job of a session comes to: three records.
pub(crate) fn staging(number: u32) -> Staging {
    let (session, job) = (session(number), job(number, 0));
    let id = RunId(Digest::of(&["run", &number.to_string()]));
    let run = StoreRun {
        id,
        session: session.id,
        slice: job.slice,
        index: 0,
        first: job.first,
        last: job.last,
        asking: Digest::of(&["asking"]),
        model: "small".to_owned(),
        prompt_id: "extract".to_owned(),
        prompt_version: 3,
        prompt_digest: None,
        schema_version: 1,
        rung: OutputMode::ForcedTool,
        generation: 0,
        asks: 1,
        calls: 1,
        usage: Usage { prompt_tokens: 100, cached_tokens: 50, completion_tokens: 10 },
        cost_micros: 7,
        state: RunState::Done,
        failure: None,
        findings: vec![],
        started_at: Timestamp(1),
        finished_at: Timestamp(2),
    };
    let covered = |ordinal| CoveredEntry {
        entry: entry(ordinal),
        state: CoverageState::Extracted,
        reason: None,
    };
    Staging {
        entries: (0..2).map(covered).collect(),
        records: (0..3).map(|n| record(&run, &session, n)).collect(),
        run,
    }
}

fn record(run: &StoreRun, session: &Session, n: u32) -> Record {
    let claim = Claim::Attempt(Attempt {
        action: format!("keep the queue in the store, part {n}"),
        result: "one thing less runs".to_owned(),
        succeeded: true,
    });
    let proof = Evidence {
        field: "action".to_owned(),
        ordinal: 0,
        line: 1,
        bytes: 8..36,
        speaker: Speaker::Person,
        name: None,
        found: EvidenceMatch::Folded,
        words: Redacted::reopened("we keep the queue in the store".to_owned()),
    };
    Record {
        id: Record::id_of(run.id, &claim),
        claim,
        provenance: Provenance {
            namespace: session.namespace.clone(),
            session: session.id,
            slice: run.slice,
            run: run.id,
            entries: (0, 1),
            at: Some(Timestamp(1)),
        },
        evidence: vec![proof],
        score: 0.75,
        state: RecordState::Staged,
        reason: None,
    }
}
