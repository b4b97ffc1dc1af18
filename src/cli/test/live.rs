//! Combinations of models and prompts, and runs against an endpoint.

use super::super::model_args;
use super::super::output::{self, Failure, Result};
use super::super::progress::{self, OFTEN, Progress, cancelled_by_signal};
use super::super::settings;
use crate::adapters::clock;
use crate::config::Config;
use crate::eval::{EvalResult, EvalRun, LiveModel, Variation};
use crate::llm::prompt::read_extraction;
use crate::pipeline::Tally;
use crate::store::OpenMode;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BAR: &str = "{prefix:.dim} [{bar:24}] {percent:>3}% {wide_msg}";

pub(super) fn variations(
    config: &Config,
    models: &[String],
    paths: &[PathBuf],
) -> Result<Vec<Variation>> {
    let mut sets = Vec::new();
    for path in paths {
        let read = read_extraction(path).map_err(Failure::usage)?;
        sets.push((Some(label(path)), read));
    }
    if sets.is_empty() {
        sets.push((None, config.prompts.extraction()));
    }
    let models: Vec<Option<&String>> = match models.is_empty() {
        true => vec![None],
        false => models.iter().map(Some).collect(),
    };
    let (mut variations, mut names) = (Vec::new(), BTreeSet::new());
    for model in models {
        for (label, prompts) in &sets {
            let mut name = match (model, label) {
                (None, None) => "all".to_owned(),
                (Some(model), None) => model.clone(),
                (None, Some(label)) => label.clone(),
                (Some(model), Some(label)) => format!("{model}, {label}"),
            };
            if !names.insert(name.clone()) {
                name = format!("{name} ({:.8})", prompts.digest().to_string());
                if !names.insert(name.clone()) {
                    return Err(Failure::usage(format!(
                        "{name}: is named twice: name each model and each prompt once"
                    )));
                }
            }
            variations.push(Variation {
                name,
                model: model.cloned(),
                prompts: Arc::clone(prompts),
            });
        }
    }
    Ok(variations)
}

/// Label of a prompt in a table: its file, or its folder if the file has a standard name.
fn label(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let own = name(path).unwrap_or_else(|| path.display().to_string());
    let stem = own.strip_suffix(".md").unwrap_or(&own);
    match (stem, path.parent().and_then(name)) {
        ("extract" | "slice" | "retry", Some(folder)) => format!("{folder}/{stem}"),
        _ => stem.to_owned(),
    }
}

pub(super) async fn run_live(run: EvalRun) -> Result<EvalResult> {
    let endpoint = model_args::endpoint(&run.config)?;
    let store = settings::open_store(&run.config, OpenMode::Create)?;
    let (cancel, tally) = (cancelled_by_signal()?, Arc::new(Tally::default()));
    let seen = Arc::clone(&tally);
    let state = move || {
        let totals = seen.totals();
        let tokens = totals.tokens.sent + totals.tokens.answered;
        let (done, all, cost) = (totals.slices_done, totals.slices, output::spent(totals.cost));
        let text = format!("{done}/{all} slices, {tokens} tokens{cost}");
        Progress { at: totals.slices_done, of: totals.slices, text }
    };
    let progress = progress::show(BAR, "asking".to_owned(), OFTEN, state);
    let stopped = cancel.clone();
    let model = LiveModel { endpoint, store, cancel, tally, clock: clock::now };
    let mut result = progress::during(progress, run.live(model)).await?;
    if stopped.is_cancelled() {
        let by_user = || "interrupted; answers are in the journal".to_owned();
        result.stopped.get_or_insert_with(by_user);
    }
    Ok(result)
}
