//! Joins the rooms and the edge: reads transcripts, cuts, asks, grounds and stages. The loops, their
//! bounds and the shutdown are here; the rooms know nothing of one another.

mod asking;
mod budget;
mod cards;
mod collect;
mod consolidating;
mod consumer;
mod cut;
mod extracting;
mod feed;
mod forgetting;
mod holding;
mod import;
mod intake;
mod judging;
mod keeping;
mod rates;
mod reader;
mod reflecting;
mod replay;
mod runner;
mod sessions;
mod setup;
mod stage;
mod steady;
mod talk;
mod tally;
mod told;
mod trial;

pub use asking::Model;
pub use consolidating::{Consolidator, Outcome, Planned};
pub use consumer::{Consumer, Counts, End, Jobs, Report, Until};
pub use feed::Feed;
pub use forgetting::{Forgetting, Forgot, Passages, Proof, What};
pub use import::{
    Answer, AnswerFile, ImportError, Imported, MODEL_UNKNOWN, answers_schema_file, import,
};
pub use intake::{Document, Enqueuer, Gather, HandOver, NotTaken, Taken, TakenIn};
pub use judging::{Asked, Halt, Judge};
pub use keeping::{KeepError, Keeper, Keeping, Kept, directory_namespace};
pub use reflecting::{LookedBack, Reflection, Reflector};
pub use replay::{Options, Plan, Replay, Stop};
pub use tally::{ByKind, FailureCount, FileProblem, Tally, TokenTotals, Totals};
pub use told::dialog_of;
pub use trial::{
    Drafted, LiveModel, Recording, Recordings, Trial, Tried, Unused, Updated, Variation, draft,
    gold_of,
};
