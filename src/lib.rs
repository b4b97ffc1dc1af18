//! annalist extracts trustworthy memory from transcripts of agents and people. `ARCHITECTURE.md`
//! describes the modules, which are listed here from the bottom up.

mod privacy;
mod domain;
mod text;
mod adapters;
mod llm;
mod transcripts;
mod slicing;
mod search;
mod extract;
mod grounding;
mod consolidate;
mod conversation_memory;
mod dialog_summary;
mod memory_card;
mod memory_dir;
mod agents;
mod context;
mod store;
mod config;
mod pipeline;
mod eval;
mod rows;
mod server;
mod cli;
#[cfg(test)]
mod testing;

pub use adapters::clock::now;
#[cfg(feature = "otel")]
pub use adapters::otel::{Traces, TracesConfig};
pub use adapters::{hook_folder::HookFolder, metrics::Outcome as JobOutcome, otel::JobSpan};
pub use agents::{
    OUTPUT_UNITS_MAX as HOOK_OUTPUT_UNITS_MAX, TAIL_BYTES as TRANSCRIPT_TAIL_BYTES, last_usage,
};
pub use cli::main;
#[cfg(fuzzing)]
pub use cli::router_for_fuzzing;
pub use config::{Config, DEFAULT as DEFAULT_CONFIG};
pub use consolidate::{Memories, Verdicts, consolidate};
pub use context::{
    Budget as ContextBudget, Entry as ContextEntry, Group as ContextGroup, Kind as ContextPartKind,
    Material as ContextMaterial, Section as ContextSection, assemble as assemble_context,
};
pub use conversation_memory::{
    ConversationLimits, ConversationMemory, MemoryMessage, MemoryType, Metadata as MessageMetadata,
    create as create_conversation_memory, from_json as messages_from_json,
    render as render_messages, summarise_by_rule, within as messages_within,
};
pub use dialog_summary::{DialogLimits, DialogRules, DialogSummary};
pub use domain::{
    Attempt, Branch, Call as ToolCall, Claim, ClaimKind, Claimed, CoverageState, Decision, Digest,
    Discussion, Entry, EntryKind, Evidence, Finish, Format, Job, JobId, LanguageModel,
    Match as EvidenceMatch, Memory, MemoryId, MemoryMap, MemoryState, Message,
    Outcome as ToolOutcome, OutputMode, Part, PersonRequest, Provenance, Record, RecordId,
    RecordState, Reply, Request, Role, RunId, RunState, Session, SessionId, Slice, SliceId,
    Speaker, Stage, Timestamp, Usage, WriteExtracted,
};
pub use extract::{
    Exchange as ExtractionExchange, ExtractionSpec, decode as decode_answer,
    tool as extraction_tool, validate as validate_answer,
};
pub use grounding::{Grounded, ground as ground_claims};
pub use llm::{Endpoint, EndpointConfig, prompt::Prompts};
pub use memory_card::{
    Card, CardBuilder, CardHead, checklist as card_checklist, yaml as card_yaml,
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
    Cutting, SLICE_TOKENS_MIN, SliceSettings, Slicer, TOOL_TOKENS_MIN, tool_tokens_max,
};
pub use store::{
    ClaimRequest, ClaimedJobs, ConversationState, CoveredEntry, Intake, JobEnding, OpenMode,
    RecordFilter, Run as StoreRun, SessionProgress, Staging, Store, StoreError,
};
pub use transcripts::{
    RawEntry, RawSession, SessionSource, TranscriptItem, detect as detect_format,
    read as read_transcript, redact_entry, redact_session,
};
