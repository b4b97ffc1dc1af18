//! Notes of an agent, staged as records marked as such. Consolidation makes no memory of a note until a person says it.

use crate::domain::{
    Branch, Claim, CoverageState, Digest, Entry, EntryKind, Evidence, Format, Match, OutputMode,
    Provenance, Record, RecordId, RecordState, RunId, RunState, Session, SliceId, Speaker,
    Timestamp, Usage,
};
use crate::privacy::Gate;
use crate::store::{CoveredEntry, Run, Staging, Store, StoreResult};

/// Prompt id in the run of a note; no model was asked.
const PROMPT: &str = "note";
const VERSION: u32 = 1;
/// Beginning of the native id of a note's session.
const NATIVE_ID: &str = "note-";

/// A claim that an agent hands over itself.
pub(crate) struct AgentNote<'a> {
    pub namespace: &'a str,
    /// Name of the agent's client, and the channel of the note.
    pub agent: &'a str,
    pub claim: Claim,
    pub at: Timestamp,
}

/// True for the session of a note, in which nothing was done.
pub(super) fn is_of_note(session: &Session) -> bool {
    session.format == Format::Slice && session.native_id.as_str().starts_with(NATIVE_ID)
}

/// Stages a note; the same note on the same day is one record.
pub(crate) async fn stage_note(
    store: &Store,
    gate: &Gate,
    note: AgentNote<'_>,
) -> StoreResult<RecordId> {
    let agent = gate.redact(note.agent);
    let claim = note.claim.map(&|text| gate.redact(text).as_str().to_owned());
    let day = note.at.day();
    let id = Digest::of(&["note", agent.as_str(), &claim.to_json().to_string(), &day]);
    let native_id = format!("{NATIVE_ID}{id:.16}");
    let session = Session {
        id: Session::id_of(note.namespace, Format::Slice, &native_id),
        namespace: note.namespace.to_owned(),
        format: Format::Slice,
        native_id: gate.redact(&native_id),
        path: agent.as_str().to_owned(),
        title: None,
        cwd: None,
        parent: None,
        branches: None,
        started_at: Some(note.at),
    };
    let (record, staging) = staging(&session, claim, gate, note.at);
    store.stage_whole(session, staging).await?;
    Ok(record)
}

/// Builds an entry with the words of the claim, and a run that made a record of it without asking a model.
fn staging(session: &Session, claim: Claim, gate: &Gate, at: Timestamp) -> (RecordId, Staging) {
    let mut words: Vec<&str> = Vec::new();
    let strings = claim.strings();
    for (_, text) in strings.iter().filter(|(_, text)| !text.is_empty()) {
        if !words.contains(text) {
            words.push(text);
        }
    }
    let text = gate.redact(&words.join("\n"));
    let evidence = strings.iter().filter(|(_, words)| !words.is_empty()).filter_map(|it| {
        let start = text.as_str().find(it.1)?;
        let bytes = start..start + it.1.len();
        Some(Evidence {
            field: it.0.clone(),
            ordinal: 0,
            line: 1,
            words: text.cut(bytes.clone()),
            bytes,
            speaker: Speaker::Assistant,
            name: None,
            found: Match::Noted,
        })
    });
    let evidence = evidence.collect();
    let name = session.id.to_string();
    let (slice, run) =
        (SliceId(Digest::of(&[PROMPT, &name])), RunId(Digest::of(&[PROMPT, &name, "run"])));
    let provenance = Provenance {
        namespace: session.namespace.clone(),
        session: session.id,
        slice,
        run,
        entries: (0, 0),
        at: Some(at),
    };
    let id = Record::id_of(run, &claim);
    let state = RecordState::Staged;
    let record = Record { id, claim, provenance, evidence, score: 1.0, state, reason: None };
    let entry = Entry {
        ordinal: 0,
        line: 1,
        native_id: None,
        speaker: Speaker::Assistant,
        kind: EntryKind::Text,
        branch: Branch::Active,
        text,
        tool: None,
        outcome: None,
        exit_code: None,
        at: Some(at),
        skip: None,
    };
    let run = run_of(session, slice, run, at);
    let covered = CoveredEntry { entry, state: CoverageState::Extracted, reason: None };
    (id, Staging { run, entries: vec![covered], records: vec![record] })
}

fn run_of(session: &Session, slice: SliceId, id: RunId, at: Timestamp) -> Run {
    Run {
        id,
        session: session.id,
        slice,
        index: 0,
        first: (0, 0),
        last: (0, 0),
        asking: Digest::of(&[PROMPT]),
        model: session.path.clone(),
        prompt_id: PROMPT.to_owned(),
        prompt_version: VERSION,
        prompt_digest: None,
        schema_version: VERSION,
        rung: OutputMode::OfferedTool,
        generation: 0,
        asks: 0,
        calls: 0,
        usage: Usage::default(),
        cost_micros: 0,
        state: RunState::Done,
        failure: None,
        findings: Vec::new(),
        started_at: at,
        finished_at: at,
    }
}
