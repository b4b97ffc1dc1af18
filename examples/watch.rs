//! Follows a folder for some seconds and says what changed:
//! `cargo run --example watch -- FOLDER SECONDS`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{Watch, WatchOptions};
use std::{error::Error, path::PathBuf, time::Duration};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let sessions = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sessions");
    let folder = PathBuf::from(given.next().as_deref().unwrap_or(sessions));
    let seconds = given.next().map_or(Ok(1), |seconds| seconds.parse())?;
    let mut watch = Watch::start(&[folder], WatchOptions::default());
    let end = tokio::time::sleep(Duration::from_secs(seconds));
    tokio::pin!(end);
    loop {
        tokio::select! {
            batch = watch.next() => {
                let Some(batch) = batch else { return Ok(()) };
                println!("{} files, {} problems", batch.files.len(), batch.problems.len());
            }
            () = &mut end => return Ok(()),
        }
    }
}
