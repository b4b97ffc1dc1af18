//! How full the window of a session is: from the end of its transcript, the settings of the memory directory,
//! and the model that the client's settings name.

use crate::cli::settings;
use crate::edge::hooks::{Growing, client_settings};
use crate::hook::{
    Input, TAIL_BYTES, Tail, Thresholds, Usage, last_usage, model_in_settings, percent,
};
use crate::memory_dir::MemoryConfig;
use std::path::{Path, PathBuf};

/// The variable with the client's model; it goes before its settings.
const MODEL: &str = "ANTHROPIC_MODEL";
/// The variable with the folder of the client's own settings.
const CLIENT: &str = "CLAUDE_CONFIG_DIR";
/// The client's settings in the project, those that go before others first.
const OF_PROJECT: [&str; 2] = [".claude/settings.local.json", ".claude/settings.json"];

/// The thresholds of the directory's settings; they were checked as they were read.
pub(super) fn thresholds(config: Option<&MemoryConfig>) -> Thresholds {
    let Some(config) = config else { return Thresholds::default() };
    let (thresholds, _) = Thresholds::new(
        Some(config.auto_sync_threshold.into()),
        Some(config.hard_block_threshold.into()),
        config.context_window_tokens.map(Into::into),
    );
    thresholds
}

/// How much of the window is in use, in percent; none if the transcript does not say.
pub(super) fn percent_of(
    transcript: &mut Growing,
    input: &Input,
    thresholds: &Thresholds,
) -> Option<u32> {
    let usage = usage(transcript)?;
    let client = model_of_client();
    let models = [usage.model.as_deref(), input.model.as_deref(), client.as_deref()];
    Some(percent(usage.tokens, thresholds.window_tokens(&models)))
}

/// What the last answer took, looking further back as long as nothing is found. A file that cannot be read
/// says nothing.
fn usage(transcript: &mut Growing) -> Option<Usage> {
    for most in TAIL_BYTES {
        let (tail, is_whole) = transcript.tail(most).ok()?;
        match last_usage(&tail, is_whole) {
            Tail::Usage(usage) => return Some(usage),
            Tail::Nothing => return None,
            Tail::CutOff => {}
        }
    }
    None
}

/// The model that the client was told to use.
fn model_of_client() -> Option<String> {
    let named = std::env::var_os(MODEL).and_then(|name| name.into_string().ok());
    let own = settings::path_of(CLIENT).or_else(|| settings::home().map(|it| it.join(".claude")));
    let own = own.map(|folder| folder.join("settings.json"));
    let places = OF_PROJECT.map(|place| Path::new(place).to_owned()).into_iter().chain(own);
    let model = |path: PathBuf| client_settings(&path).as_deref().and_then(model_in_settings);
    named.filter(|name| !name.is_empty()).or_else(|| places.into_iter().find_map(model))
}
