//! Memories become Markdown, a person edits it, and the next run keeps both: `cargo run --example memory_dir`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{Claim, Decision, Digest, Memory, MemoryId, MemoryState, Speaker, Stage, Timestamp};
use annalist::{
    DirectoryFacts, DirectoryFiles, DirectoryQuery, LintOptions, RenderedDirectory, lint_directory,
    print_lint, render_directory, search_directory, update_directory,
};
use annalist::{Gate, Pii};

/// 2026-11-21.
const TODAY: Timestamp = Timestamp(1_795_219_200_000);

fn decided(name: &str, chosen: &str, others: &[&str], rationale: &str) -> Memory {
    let options = [chosen].iter().chain(others).map(|option| (*option).to_owned()).collect();
    Memory {
        id: MemoryId(Digest::of(&[name])),
        namespace: "example".into(),
        claim: Claim::Decision(Decision {
            options,
            chosen: chosen.into(),
            rationale: rationale.into(),
        }),
        stage: Stage::Decided,
        state: MemoryState::Active,
        said_by: Speaker::Person,
        confirmed: false,
        edited: None,
        decided: None,
        valid_from: Some(TODAY),
        last_said: None,
        valid_until: None,
        superseded_by: None,
        settled_by: None,
        settled_as: None,
        ends: None,
        reason: None,
        sources: Vec::new(),
    }
}

fn rendered(
    memories: &[Memory],
    base: &DirectoryFiles,
    disk: &DirectoryFiles,
    gate: &Gate,
) -> RenderedDirectory {
    let facts = DirectoryFacts {
        memories,
        sessions: &[],
        contradictions: &[],
        missing: &[],
        last: &Default::default(),
        today: TODAY,
        gate,
    };
    render_directory(&facts, base, disk)
}

fn main() {
    let gate = Gate::new(&Pii::ALL);
    let mut memories =
        vec![decided("db", "Use PostgreSQL", &["Use SQLite"], "Many workers write at once")];
    let base = rendered(&memories, &DirectoryFiles::new(), &DirectoryFiles::new(), &gate).files;
    let mut disk = base.clone();

    // A person writes between the runs, also what nobody else is to read.
    for text in disk.values_mut() {
        let words =
            "## Open Questions\n- Who looks after it?\n<private>\n- Ask Ada, not Bob\n</private>\n";
        *text = text.replace("## Open Questions\n", words).into();
    }
    memories.push(decided("names", "Name files in snake_case", &[], "The linter asks for it"));
    let now = rendered(&memories, &base, &disk, &gate);
    let update = update_directory(&base, &now, &disk, &gate);
    println!("{} conflicts", update.conflicts.len());
    for change in update.changes {
        println!("--- {}\n{}", change.path, change.after.clone().unwrap_or_default());
        disk.insert(change.path, change.after.unwrap_or_default());
    }

    let (files, rendered) = (&disk, &now.files);
    let linting = LintOptions { files, known: None, rendered, today: TODAY, gate: &gate };
    println!("{}", print_lint(&lint_directory(&linting)));
    for words in ["postgresql", "Bob"] {
        let query = DirectoryQuery { words: words.to_owned(), ..DirectoryQuery::default() };
        println!("{words}: {} found", search_directory(&disk, &query, &gate).len());
    }
}
