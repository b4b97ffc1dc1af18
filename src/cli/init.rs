//! `annalist init`: a config.toml with every key.

use super::output::{self, Failure};
use super::settings;
use crate::config::DEFAULT;
use crate::edge::disk;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist init && annalist doctor")]
pub(super) struct Args {
    /// Print it instead of writing it
    #[arg(long)]
    print: bool,
    /// Write it into the user's configuration folder instead of this one
    #[arg(long, conflicts_with = "print")]
    user: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.print {
        output::line(DEFAULT.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = match args.user {
        false => PathBuf::new(),
        true => settings::user_folder().ok_or_else(|| {
            Failure::usage("neither XDG_CONFIG_HOME nor HOME is set: use `annalist init --print`")
        })?,
    };
    let path = folder.join("config.toml");
    let written = disk::create(&path, DEFAULT).map_err(|error| {
        Failure::failed(format!("{}: cannot be written: {error}", path.display()))
    })?;
    if !written {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} is there already and is left as it is: `annalist init --print` shows the defaults"
        )));
    }
    output::line(&format!("wrote {}", path.display()))?;
    output::note("next: set base_url and model, then `annalist doctor`");
    Ok(ExitCode::SUCCESS)
}
