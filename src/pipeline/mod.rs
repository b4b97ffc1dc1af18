//! The pipeline: ingests transcripts; workers extract, ground and store their slices. Loops, bounds and shutdown live
//! here; the lower layers do not know of one another.

mod asked;
pub(crate) mod model_client;
pub(crate) mod budget;
mod consolidating;
mod verify;
mod worker;
pub(crate) mod extractor;
mod feed;
mod forgetting;
pub(crate) mod import;
mod ingest;
mod lookup;
mod namespace;
mod noting;
mod obstacles;
mod adjudicate;
pub(crate) mod dir_sync;
mod directories;
mod origin;
mod preamble;
mod reader;
mod replay;
mod review;
mod searching;
mod summarising;
pub(crate) mod retrying_store;
pub(crate) mod dialogue;
pub(crate) mod tally;

pub(crate) use adjudicate::{Adjudicator, AskMode, Halt, ModelUsage};
pub(crate) use asked::{Asked, asked};
pub(crate) use consolidating::{
    ConsolidationOutcome, Consolidator, DecisionOutcome, PlannedConsolidation, RedoOutcome,
};
pub(crate) use dir_sync::{DirSync, SyncError, SyncReport, directory_of};
pub(crate) use directories::{
    Directories, DirectoryNotes, ForgetResult, PUBLISHED_IN, ProjectDirectory, ShownFiles,
    SyncedDirectory, left_behind, project_namespace,
};
pub(crate) use extractor::{ModelSource, trial};
pub(crate) use feed::Feed;
pub(crate) use forgetting::{
    ErasureProof, ForgetPlan, ForgetTarget, Forgotten, becomes, check_meant,
};
pub(crate) use import::answers_schema_file;
pub(crate) use ingest::{
    EnqueueOptions, Enqueuer, Gather, IntakeReport, IntakeSource, SessionIntake,
};
pub(crate) use lookup::{
    LookupError, MemoryChange, Why, memories_at, memory_history, memory_named, rule_in_words,
    tag_or_id, why,
};
pub use model_client::Model;
pub(crate) use namespace::{Namespaces, namespace_of_folder};
pub(crate) use noting::{AgentNote, stage_note};
pub(crate) use obstacles::{Obstacle, obstacles, spooled_line};
pub(crate) use origin::{Certainty, Origin, OriginRequest, RelatedRecord, WorkingSession};
pub(crate) use preamble::dialog_of;
pub(crate) use replay::{Options, Plan, Replay};
pub(crate) use review::{Question, pair_questions, pairs, questions, undecided};
pub(crate) use searching::{
    DayHits, Embedder, HitState, SearchHit, SearchRequest, hit_of_memory, marked, search,
    search_days, undated_left_out, with_marks,
};
pub(crate) use summarising::{Summarised, Summariser};
pub use tally::Tally;
pub(crate) use tally::{FileProblem, FindingPlace, TokenTotals, Totals};
pub(crate) use verify::{MissingName, Verification, VerifyError};
pub use worker::{Consumer, Counts, Until};
pub(crate) use worker::{End, Jobs, Report};

use tokio::task::JoinError;

/// Runs blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match join_result(tokio::task::spawn_blocking(work).await) {
        Some(done) => done,
        // It never ran: the runtime is shutting down, and this future with it.
        None => std::future::pending().await,
    }
}

/// The result of a task; `None` where the runtime is shutting down. Resumes its panic, since continuing would lose its
/// work.
pub(crate) fn join_result<T>(task: Result<T, JoinError>) -> Option<T> {
    task.map_err(|died| died.try_into_panic().map(|panic| std::panic::resume_unwind(panic))).ok()
}
