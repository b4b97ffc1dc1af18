//! What a worker shows to the outside: `/metrics` for Prometheus and `/healthz` for whoever restarts it.
//! Names, kinds and counts only: no id of a session, no namespace, no word of a conversation.
//!
//! | series | kind | what it says |
//! |---|---|---|
//! | `annalist_build_info{version}` | info | 1, with the version of this process |
//! | `annalist_start_time_seconds` | gauge | When this process began, in seconds since 1970 |
//! | `annalist_claims_total` | counter | Jobs that this worker took |
//! | `annalist_outcomes_total{outcome}` | counter | How the jobs that it took ended: [`Outcome`]; `lost` counts lost leases |
//! | `annalist_leases_expired_total` | counter | Leases of any worker that ran out and that this one took back |
//! | `annalist_calls_total{result}` | counter | Calls of the model: `ok`, or the kind of the error |
//! | `annalist_call_duration_seconds` | histogram | How long a call took, well or not |
//! | `annalist_calls_in_flight` | gauge | Calls under way |
//! | `annalist_concurrency_limit` | gauge | Calls that may be under way, as the endpoint bears them |
//! | `annalist_last_successful_call_timestamp_seconds` | gauge | When a call last went well, in seconds since 1970; 0 if none has |
//! | `annalist_retries_total{kind}` | counter | Calls that are made again, by what went wrong |
//! | `annalist_tokens_total{sort}` | counter | Tokens: `sent`, of those `cached`, and `answered` |
//! | `annalist_cost_usd_total` | counter | US dollars, by the prices of the settings |
//! | `annalist_store_errors_total` | counter | What the store refused or failed to do |
//! | `annalist_slices_enqueued_total` | counter | Slices that this process put into the queue |
//! | `annalist_records_total{kind,state}` | counter | Records that this worker stored: `staged` or `quarantined`, by kind |
//! | `annalist_store_up` | gauge | 1 if the store answered for this page, else 0 and the series below are left out |
//! | `annalist_jobs{state}` | gauge | Jobs in the store |
//! | `annalist_oldest_job_age_seconds{state}` | gauge | Age of the oldest job; 0 where there is none |
//! | `annalist_waiting_jobs{reason}` | gauge | Jobs that wait, by why |
//! | `annalist_entries{state}` | gauge | Entries in the store, by what became of them |
//!
//! The first part counts in this process from its start; the second is read from the store and is the
//! same at every worker on it. Worth an alert:
//!
//! | what | expression |
//! |---|---|
//! | the queue stands still | `max(annalist_oldest_job_age_seconds{state="ready"}) > 900` |
//! | work that needs a person | `max(annalist_jobs{state="dead"}) > 0` |
//! | the store is away | `annalist_store_up == 0` |
//! | calls fail though there is work | `time() - annalist_last_successful_call_timestamp_seconds > 900 and on() max(annalist_jobs{state="ready"}) > 0` |
//! | money | `sum(increase(annalist_cost_usd_total[1d])) > 20` |
//!
//! The page is OpenMetrics text, which every Prometheus since 2.5 reads.

mod health;
mod label;
mod meters;
mod panel;
mod server;
mod snapshot;

#[cfg(test)]
mod checker;
#[cfg(test)]
mod tests;

pub use health::Health;
pub use label::Outcome;
pub use meters::{CallMeter, Meters};
pub use panel::{Panel, SNAPSHOT_KEPT, SNAPSHOT_WAIT_MAX};
pub use server::{BindError, BindErrorKind, Listener};
pub use snapshot::{Jobs, Snapshot};
