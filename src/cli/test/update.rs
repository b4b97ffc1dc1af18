//! `annalist test --update`: what is derived is made anew.

use super::super::output::{self, Failure, RED, counted};
use crate::worker::{Trial, Updated};
use std::process::ExitCode;

pub(super) fn run(trial: &Trial) -> Result<ExitCode, Failure> {
    let [variation] = trial.variations.as_slice() else {
        return Err(Failure::usage("--update: expected one model and one prompt at most"));
    };
    let (mut changed, mut failed) = (0, false);
    for place in &trial.cases {
        match trial.update(place, variation) {
            Ok(Updated { written, gone, findings }) => {
                for path in &written {
                    output::line(&format!("wrote {}", path.display()))?;
                }
                for path in &gone {
                    output::line(&format!("took away {}", path.display()))?;
                }
                for finding in &findings {
                    output::note(&format!("{}: {finding}", place.name));
                }
                changed += written.len() + gone.len();
            }
            Err(what) => {
                failed = true;
                output::note(&format!("{RED}error:{RED:#} {}: {what}", place.name));
            }
        }
    }
    if changed == 0 && !failed {
        let cases = counted(trial.cases.len() as u64, "case");
        output::note(&format!("{cases}: everything that is derived is up to date"));
    }
    Ok(ExitCode::from(if failed { output::FAILED } else { 0 }))
}
