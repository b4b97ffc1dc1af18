//! Flags of commands that ask a model: which one, how often at once, or recorded answers instead.

use super::output::{self, Failure};
use crate::config::Config;
use crate::edge::model::Cassette;
use crate::worker::Model;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct Asks {
    /// The model's name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Take recorded answers from this folder instead of an endpoint
    #[arg(long, value_name = "DIR")]
    cassette: Option<PathBuf>,
    /// Calls at the same time, instead of model.concurrency
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: Option<u32>,
}

impl Asks {
    /// Lays the flags over the settings.
    pub(super) fn lay_over(&self, config: &mut Config) {
        if let Some(concurrency) = self.concurrency {
            config.model.concurrency = concurrency as usize;
        }
    }

    /// What answers, and the model's name.
    pub(super) fn model(&self, config: &Config) -> Result<(Model, String), Failure> {
        let named = self.model.as_deref();
        if let Some(folder) = &self.cassette {
            let cassette = recorded(folder)?;
            let name = named.or(cassette.model()).unwrap_or(&config.model.model).to_owned();
            return Ok((Model::Cassette(Box::new(cassette)), name));
        }
        let endpoint = super::doctor::endpoint(config)?;
        let name = named.unwrap_or(&config.model.model).to_owned();
        Ok((Model::Endpoint(Box::new(endpoint)), name))
    }
}

pub(super) fn recorded(folder: &Path) -> Result<Cassette, Failure> {
    let (cassette, findings) = Cassette::load(folder).map_err(|error| {
        Failure::usage(format!("{}: no cassette can be read there: {error}", folder.display()))
    })?;
    findings.iter().for_each(|finding| output::note(&format!("cassette: {finding}")));
    if cassette.is_empty() {
        return Err(Failure::usage(format!("{}: holds no recorded answers", folder.display())));
    }
    output::note(&origins(&cassette));
    Ok(cassette)
}

fn origins(cassette: &Cassette) -> String {
    let origins = cassette.origins();
    let kinds = [
        (origins.recorded, "recorded from a model"),
        (origins.imported, "imported from recorded answers"),
        (origins.hand_written, "written by hand"),
    ];
    let said: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{n} {kind}")).collect();
    format!("answers come from the cassette, no model is asked: {}", said.join(", "))
}
