//! The whole line as a process: the real binary, a folder of its own, no network but this machine's.
#![cfg(test)]

mod again;
mod bad_input;
mod baselines;
mod beside;
mod caps;
mod consolidating;
mod contract;
mod context_cli;
mod cli_schemas;
mod conversation;
mod cards;
mod clients;
mod crash;
mod disturbed;
mod dialog;
mod everyday;
mod examples;
mod faults;
mod forgetting;
mod hand_over;
mod handed;
mod handing;
mod hook_cli;
mod input;
mod judging;
mod judging_badly;
mod mcp;
mod memory_cli;
mod memory_killed;
mod namespaces;
mod own_prompts;
mod page;
mod place;
mod printing;
mod privacy;
mod prompt_tests;
mod prompt_tests_told;
mod publishing;
mod queue;
#[cfg(unix)]
mod readme;
mod redacted_answers;
#[path = "../../src/store/fixture/server.rs"]
mod server;
mod reflecting;
mod searching;
mod serving;
mod settings;
mod setting_up;
mod shared;
mod stores;
#[cfg(feature = "nats")]
mod stream;
mod stub;
mod tidy;
mod told;
mod vault;
mod verdicts;
mod why_code;
mod worker;
mod worker_ends;
mod worker_limits;
