//! annalist turns what agents and people said into memory that can be trusted: transcripts in,
//! proven records out. `ARCHITECTURE.md` has the modules; they are listed from the ground up.

pub mod privacy;
pub mod domain;
pub mod text;
pub mod adapters;
pub mod llm;
pub mod transcripts;
pub mod slicing;
pub mod extract;
pub mod grounding;
pub mod consolidate;
pub mod conversation_memory;
pub mod dialog_summary;
pub mod memory_card;
pub mod memory_dir;
pub mod agents;
pub mod context;
pub mod store;
pub mod config;
pub mod pipeline;
pub mod eval;
mod cli;
#[cfg(test)]
mod testing;

pub use adapters::clock::now;
#[cfg(feature = "otel")]
pub use adapters::otel::{Traces, TracesConfig};
pub use adapters::{
    hook_folder::HookFolder, metrics::Outcome as JobOutcome, otel::JobSpan,
    watch::Options as WatchOptions, watch::Watch,
};
pub use agents::{
    Event as HookEvent, Input as HookInput, Merged as MergedSettings,
    OUTPUT_UNITS_MAX as HOOK_OUTPUT_UNITS_MAX, Output as HookOutput, Seen as HookSeen,
    State as HookState, TAIL_BYTES as TRANSCRIPT_TAIL_BYTES, Tail as TranscriptTail,
    Thresholds as HookThresholds, changes as settings_changes, decide as decide_hook,
    install as install_hooks, last_usage, percent as window_percent,
};
pub use cli::main;
pub use config::{Config, DEFAULT as DEFAULT_CONFIG};
pub use consolidate::{
    Adjudication, AdjudicationSpec, LessonSpec, LessonTask, Memories, REFLECT_TOOL_NAME, Verdicts,
    as_of as memory_as_of, consolidate, history as memory_history, lesson_batches, pair_batches,
};
pub use context::{
    Budget as ContextBudget, Decision as ContextDecision, Document as ContextDocument,
    Entry as ContextEntry, Material as ContextMaterial, Section as ContextSection,
    assemble as assemble_context,
};
pub use conversation_memory::{
    Absorbed, ConversationLimits, ConversationMemory, MemoryMessage, MemoryType,
    Metadata as MessageMetadata, create as create_conversation_memory,
    from_json as messages_from_json, render as render_messages, summarise_by_rule,
    within as messages_within,
};
pub use dialog_summary::{
    AskedQuestion, CompactSummary, DialogLimits, DialogRules, DialogSummary, DialogTurn,
};
pub use domain::{
    Attempt, Branch, CLAIMS_MAX, Call as ToolCall, Claim, ClaimKind, Claimed, CoverageState,
    Decision, Digest, Discussion, Entry, EntryKind, Evidence, FINDINGS_MAX, Finish, Format, Job,
    JobId, LanguageModel, Match as EvidenceMatch, Memory, MemoryId, MemoryMap, MemoryState,
    Message, Outcome as ToolOutcome, OutputMode, Part, PersonRequest, Provenance, Record, RecordId,
    RecordState, Reply, Request, Role, RunId, RunState, Session, SessionId, Slice, SliceId,
    Speaker, Stage, Timestamp, Usage, Wait as JobWait, WriteExtracted, estimate_tokens,
};
pub use extract::{
    Exchange as ExtractionExchange, ExtractionSpec, SCHEMA_VERSION as EXTRACTION_SCHEMA_VERSION,
    decode as decode_answer, tool as extraction_tool, validate as validate_answer,
};
pub use grounding::{SCORE_MIN as GROUNDING_SCORE_MIN, ground as ground_claims};
pub use llm::{
    CassetteFile, Endpoint, EndpointConfig, Origin as AnswerOrigin, prompt::BatchPrompt,
    prompt::Prompts, prompt::SummaryPrompt,
};
pub use memory_card::{
    Card, CardBuilder, CardHead, Ellipsis, checklist as card_checklist, yaml as card_yaml,
};
pub use memory_dir::{
    Document as MemoryDocument, Facts as DirectoryFacts, Files as DirectoryFiles,
    Initial as InitialDirectory, Kind as DirectoryFileKind, Linting as LintOptions,
    Preset as BudgetPreset, Query as DirectoryQuery, Rendered as RenderedDirectory, SessionNote,
    initial_files as initial_directory_files, lint as lint_directory, print_text as print_lint,
    render as render_directory, search as search_directory, update as update_directory,
};
pub use pipeline::{
    Consumer as Worker, Counts as WorkerCounts, Model as WorkerModel, Tally, Until as RunUntil,
};
pub use privacy::{Gate, Pii, Redacted, Report as RedactionReport};
pub use slicing::{
    Cutting, SLICE_TOKENS_MIN, SliceCut, SliceSettings, Slicer, TOOL_TOKENS_MIN, tool_tokens_max,
};
pub use store::{
    ClaimRequest, ClaimedJobs, ConversationState, CoveredEntry, Gathering, Intake, JobEnding,
    JobRelease, OpenMode, RecordFilter, Run as StoreRun, SessionProgress, Staging, Store,
    StoreError,
};
pub use transcripts::{
    RawEntry, RawSession, SessionSource, TranscriptItem, detect as detect_format,
    read as read_transcript, redact_entry, redact_session,
};
