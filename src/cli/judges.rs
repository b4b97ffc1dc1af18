//! Flags of commands that make memory or look back at it: which model is asked, if any.

use super::asks::recorded;
use super::doctor;
use super::output::{self, Failure, count, counted};
use super::signals::Signals;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::edge::clock;
use crate::edge::store::Store;
use crate::worker::{Asked, Judge, Model, Reflector};
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Debug, clap::Args)]
pub(super) struct Judges {
    /// Ask this model, instead of consolidate.model
    #[arg(long, value_name = "NAME", conflicts_with = "no_model")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Ask no model: everything goes by rule alone
    #[arg(long)]
    no_model: bool,
    /// Take the model's answers from this folder of recorded ones instead of an endpoint
    #[arg(long, value_name = "DIR", conflicts_with = "no_model")]
    cassette: Option<PathBuf>,
}

impl Judges {
    /// Who is asked what no rule decides; none where everything goes by rule. Ctrl-C stops the asking from then on.
    pub(super) async fn judge(
        &self,
        config: &Config,
        store: &Store,
    ) -> Result<Option<Arc<Judge>>, Failure> {
        let Some((model, name)) = self.who(config)? else { return Ok(None) };
        let stop = (stopped()?, clock::now as fn() -> Timestamp);
        let judge = Judge::new(config, (model, &name), store.clone(), stop).await?;
        Ok(Some(Arc::new(judge)))
    }

    /// Who is asked what records teach; otherwise as [`Judges::judge`].
    pub(super) async fn reflector(
        &self,
        config: &Config,
        store: &Store,
    ) -> Result<Option<Reflector>, Failure> {
        let Some((model, name)) = self.who(config)? else { return Ok(None) };
        let stop = (stopped()?, clock::now as fn() -> Timestamp);
        Ok(Some(Reflector::new(config, (model, &name), store.clone(), stop).await?))
    }

    fn who(&self, config: &Config) -> Result<Option<(Model, String)>, Failure> {
        let named = self.model.as_ref().or(config.consolidate.model.as_ref());
        if self.no_model {
            return Ok(None);
        }
        if let Some(folder) = &self.cassette {
            let cassette = recorded(folder)?;
            let own = self.model.as_deref().or(cassette.model());
            let name = own.or(named.map(String::as_str)).unwrap_or(&config.model.model).to_owned();
            return Ok(Some((Model::Cassette(Box::new(cassette)), name)));
        }
        let Some(name) = named else { return Ok(None) };
        let endpoint = doctor::endpoint(config)?;
        Ok(Some((Model::Endpoint(Box::new(endpoint)), name.clone())))
    }
}

/// Cancelled at the first Ctrl-C.
fn stopped() -> Result<CancellationToken, Failure> {
    let cancel = CancellationToken::new();
    let (signals, told) = (Signals::new()?, cancel.clone());
    tokio::spawn(signals.hear(move || {
        told.cancel();
        output::note("stopping: calls under way may finish (Ctrl-C again stops at once)");
    }));
    Ok(cancel)
}

/// What was put to a model about something, in a line.
pub(super) fn line(about: &str, asked: &Asked) -> String {
    let free = match asked.journaled {
        0 => String::new(),
        journaled => format!(" ({} from the journal)", count(journaled)),
    };
    format!(
        "asked about {about} in {}{free}: {}, {} tokens sent, {} answered, ${:.4}",
        counted(asked.questions, "question"),
        counted(asked.calls, "call"),
        count(asked.sent),
        count(asked.answered),
        asked.cost_micros as f64 / 1e6
    )
}

/// The same as JSON: what was asked, and what it cost.
pub(super) fn to_json(asked: &Asked) -> (Value, Value) {
    let what = json!({
        "pairs": asked.pairs, "questions": asked.questions, "journaled": asked.journaled,
    });
    let usage = json!({
        "calls": asked.calls, "sent": asked.sent, "cached": asked.cached,
        "answered": asked.answered, "cost": asked.cost_micros as f64 / 1e6,
    });
    (what, usage)
}
