//! `annalist memory tags` and `tokens`: counts.

use super::super::output::{self, Failure, count};
use super::place::{Dir, read};
use crate::memory_dir::{CONFIG, MemoryConfig, TokenRow, tags as tags_of, tokens as tokens_of};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist memory tokens --json")]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: Dir,
}

pub(super) fn tags(args: &Args) -> Result<ExitCode, Failure> {
    let counts = tags_of(&read(&args.dir.find()?)?.files);
    if args.json {
        output::json(&counts)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = output::table(&["tag", "kind", "entries"]);
    for (kind, list) in [("category", &counts.categories), ("tag", &counts.tags)] {
        let mut rows: Vec<(&String, &u64)> = list.iter().collect();
        rows.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
        for (name, number) in rows {
            table.add_row([name.clone(), kind.to_owned(), count(*number)]);
        }
    }
    table.add_row(["src-…".to_owned(), "memories".to_owned(), count(counts.sources)]);
    output::print_table(&table)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn tokens(args: &Args) -> Result<ExitCode, Failure> {
    let files = read(&args.dir.find()?)?.files;
    let (config, _) = MemoryConfig::parse(files.get(CONFIG).map_or("", String::as_str));
    let told = tokens_of(&files, &config);
    if args.json {
        let over: Vec<&str> =
            told.rows.iter().filter(|row| row.is_over()).map(|row| row.path.as_str()).collect();
        output::json(&json!({
            "budget": config.token_budget.name(),
            "files": told.rows,
            "over": over,
            "tokens": told.tokens,
            "start_tokens": told.start_tokens,
            "start_tokens_max": told.total_max,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = output::table(&["file", "tokens", "may have", ""]);
    for row in &told.rows {
        let range = row.range.map_or(String::new(), |(least, most)| {
            format!("{}–{}", count(u64::from(least)), count(u64::from(most)))
        });
        let tokens = count(u64::from(row.tokens));
        table.add_row([row.path.clone(), tokens, range, remark(row).to_owned()]);
    }
    output::print_table(&table)?;
    let [start, most, all] =
        [told.start_tokens, told.total_max, told.tokens].map(|it| count(u64::from(it)));
    let name = config.token_budget.name();
    output::line(&format!(
        "\na session starts with {start} of {most} tokens (budget {name}); all files have {all}"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn remark(row: &TokenRow) -> &'static str {
    if row.is_private {
        "private: not counted"
    } else if row.is_over() {
        "over"
    } else {
        ""
    }
}
