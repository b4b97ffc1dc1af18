//! Law: the merge of a memory directory loses no line of a person, changes nothing where nothing was rendered anew, and
//! is done after one run.
#![no_main]

use annalist::{DirectoryFiles, Gate, RenderedDirectory, update_directory};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

const PATH: &str = "active-context.md";

/// A rendered list as ids and versions of words, what a person left of it with lines between, and a file of any text.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    base: BTreeMap<u8, u8>,
    ours: BTreeMap<u8, u8>,
    theirs: Vec<(u8, Option<u8>)>,
    any: &'a str,
}

fn entry(id: u8, words: u8) -> String {
    format!("- what {id} says in version {words}\n<!-- @tag: src-000000{id:02x} -->\n")
}

fn file(lines: impl Iterator<Item = String>) -> DirectoryFiles {
    let list: String = lines.collect();
    let text = format!("# Active Context\n\n## Open Questions\n{list}");
    DirectoryFiles::from([(PATH.to_owned(), text)])
}

/// The directory after one run.
fn run(base: &DirectoryFiles, ours: &DirectoryFiles, disk: &DirectoryFiles) -> DirectoryFiles {
    let rendered = RenderedDirectory { files: ours.clone(), ..RenderedDirectory::default() };
    let mut after = disk.clone();
    for change in update_directory(base, &rendered, disk, &Gate::new(&[])).changes {
        after.remove(&change.path);
        after.extend(change.after.map(|text| (change.path, text)));
    }
    after
}

fuzz_target!(|input: Input<'_>| {
    let Input { base, ours, theirs, any } = input;
    let rendered =
        |list: &BTreeMap<u8, u8>| file(list.iter().map(|(id, words)| entry(*id, *words)));
    let own = |name: u8| format!("- a person's line {name}\n");
    let (base_file, ours_file) = (rendered(&base), rendered(&ours));
    let disk = file(theirs.iter().map(|(id, words)| match (words, base.get(id)) {
        (None, Some(before)) => entry(*id, *before),
        _ => own(*id),
    }));
    let once = run(&base_file, &ours_file, &disk);
    for (id, _) in theirs.iter().filter(|(id, words)| words.is_some() || !base.contains_key(id)) {
        assert!(once[PATH].contains(&own(*id)), "a line is lost: {once:?}");
    }
    assert_eq!(run(&ours_file, &ours_file, &once), once, "the second run changes nothing");
    let any = DirectoryFiles::from([(PATH.to_owned(), any.to_owned())]);
    assert_eq!(run(&base_file, &base_file, &any), any, "nothing was rendered anew");
});
