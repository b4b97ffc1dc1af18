//! `annalist schema`: the published schemas.

use super::output::{self, Failure};
use crate::consolidate;
use crate::edge::{disk, model};
use crate::extract::schema_files;
use crate::score;
use crate::source::schema_file;
use crate::worker::answers_schema_file;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist schema write_extracted.v1.json")]
pub(super) struct Args {
    /// Which schema; all of them by default
    name: Option<String>,
    /// Compare the files of a folder with the types; exit 1 if they differ
    #[arg(long)]
    check: bool,
    /// Write the schemas into the folder
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// The folder for --check and --write
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    dir: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let files = schema_files().into_iter().chain(consolidate::schema_files());
    let files = files.chain(consolidate::reflect_schema_files());
    let tests = score::schema_files().into_iter();
    let tests = tests.chain([model::schema_file(), answers_schema_file()]);
    let files: Vec<_> = files.chain([schema_file()]).chain(tests).collect();
    let known: Vec<&str> = files.iter().map(|(name, _)| name.as_ref()).collect();
    let known = known.join(", ");
    let wanted = |name: &str| args.name.as_deref().is_none_or(|wanted| wanted == name);
    let chosen: Vec<_> = files.into_iter().filter(|(name, _)| wanted(name.as_ref())).collect();
    if chosen.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("unknown schema `{name}`: expected {known}")));
    }
    let mut code = ExitCode::SUCCESS;
    for (name, content) in &chosen {
        let name: &str = name.as_ref();
        let path = args.dir.join(name);
        if args.check {
            let published = disk::read_to_string(&path).unwrap_or_default();
            let same = published.trim() == content.trim();
            let state =
                if same { "is the type" } else { "differs from the type: run `just bless`" };
            output::line(&format!("{}: {state}", path.display()))?;
            if !same {
                code = ExitCode::from(output::FAILED);
            }
        } else if args.write {
            disk::replace(&path, content).map_err(|error| {
                Failure::failed(format!("{}: cannot be written: {error}", path.display()))
            })?;
        } else {
            output::line(content.trim_end())?;
        }
    }
    Ok(code)
}
