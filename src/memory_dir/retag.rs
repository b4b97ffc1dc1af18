//! Tags that an edit left with the wrong words: a person wrote a line between an entry and its tag, emptied an entry, or
//! removed its words but not its tag.

use super::document::{Block, Document, Part, Shape};
use super::edit::Edits;
use super::kind::Kind;
use super::tag::{SOURCE, Tag};
use super::units::words;
use std::collections::{HashMap, HashSet};

/// The file with each tag below the words that it stood below when the file was last `seen`. A tag whose words are gone is
/// left out, so that its entry counts as removed. `None` if no tag is astray.
pub(crate) fn with_tags_in_place(kind: Kind, seen: &str, now: &str) -> Option<String> {
    let ((before, _), (disk, _)) = (Document::parse(kind, seen), Document::parse(kind, now));
    if disk.is_private() || disk.first(Part::Marker).is_some() {
        return None;
    }
    let known = Known::of(&before, &disk);
    let mut edits = Edits::new(&disk);
    // New lines without a tag, one below the other.
    let mut above: Vec<usize> = Vec::new();
    for (at, block) in disk.blocks.iter().enumerate() {
        let (is_entry, tag) = (matches!(block.part, Part::Entry(_)), sources(&disk, block).next());
        if matches!(block.part, Part::Blank | Part::Comment) {
            continue;
        } else if is_entry && tag.is_none() {
            let is_new =
                !disk.holds_private(block) && !known.own.contains(&words(disk.body(block)));
            above.extend(is_new.then_some(at));
            continue;
        }
        let spot = tag.filter(|_| is_entry).and_then(|tag| known.spot(&disk, &above, block, tag));
        above.clear();
        if tag.is_none() || disk.holds_private(block) {
            continue;
        }
        let (body, tags) = (disk.body(block), known.without_lost(&disk, block));
        match spot {
            Some(Spot::Above(place)) => {
                let line = disk.body(&disk.blocks[place]);
                let end = if line.ends_with('\n') { "" } else { disk.line_end() };
                edits.replace_raw(place, &format!("{line}{end}{tags}"));
                edits.replace_raw(at, body);
            }
            Some(Spot::Gone) => edits.remove(at),
            None if body.len() + tags.len() == disk.raw(block).len() => {}
            None if block.part == Part::StrayTag => edits.remove(at),
            None => edits.replace_raw(at, &format!("{body}{tags}")),
        }
    }
    let edited = (!edits.is_empty()).then(|| edits.finish());
    edited.filter(|it| it.held.is_none()).map(|it| it.text)
}

/// Place of the words of an entry whose tag stands elsewhere.
enum Spot {
    Above(usize),
    /// Nothing is left of them.
    Gone,
}

/// Entries when the file was last seen.
struct Known<'t> {
    /// Words of each memory's first entry, by tag.
    words: HashMap<&'t str, String>,
    /// Entries without a tag.
    own: HashSet<String>,
    /// Tags of entries now.
    shown: HashSet<&'t str>,
}

impl<'t> Known<'t> {
    fn of(before: &Document<'t>, disk: &Document<'t>) -> Known<'t> {
        let shown = disk.entries().filter_map(|block| sources(disk, block).next()).collect();
        let mut known = Known { words: HashMap::new(), own: HashSet::new(), shown };
        for block in before.entries() {
            let words = words(before.body(block));
            match sources(before, block).next() {
                Some(tag) => _ = known.words.entry(tag).or_insert(words),
                None => _ = known.own.insert(words),
            }
        }
        known
    }

    /// Place of the words of an entry with this tag, if they are not there: in a line above, or nowhere.
    fn spot(&self, disk: &Document<'_>, above: &[usize], block: &Block, tag: &str) -> Option<Spot> {
        let (was, now) = (self.words.get(tag)?, words(disk.body(block)));
        if block.part == Part::Entry(Shape::Row) || *was == now {
            return None;
        }
        let share = |at: &usize| shared(was, &words(disk.body(&disk.blocks[*at])));
        let best = above.iter().copied().max_by_key(share);
        let best = best.filter(|at| is_most(was, share(at)) && shared(was, &now) < share(at));
        best.map(Spot::Above).or(now.is_empty().then_some(Spot::Gone))
    }

    /// The tags of a block without those of memories whose words are nowhere. A decision record is one memory.
    fn without_lost(&self, disk: &Document<'_>, block: &Block) -> String {
        let now = words(disk.body(block));
        let tags = disk.raw(block).get(disk.body(block).len()..).unwrap_or_default();
        let tags = if block.part == Part::StrayTag { disk.raw(block) } else { tags };
        let is_lost = |line: &&str| {
            let tag = Tag::of_line(line).and_then(|it| it.ours());
            let tag = tag.filter(|tag| disk.kind != Kind::Decision && !self.shown.contains(tag));
            let was = tag.and_then(|tag| self.words.get(tag));
            was.is_some_and(|was| !is_most(was, shared(was, &now)))
        };
        tags.split_inclusive('\n').filter(|line| !is_lost(line)).collect()
    }
}

/// Tags of memories below a block.
fn sources<'t>(document: &Document<'t>, block: &Block) -> impl Iterator<Item = &'t str> {
    let tags = document.tags(block).filter_map(|tag| tag.ours());
    tags.filter(|tag| tag.starts_with(SOURCE))
}

/// Number of words of `was` that are in `now`.
fn shared(was: &str, now: &str) -> usize {
    let now: HashSet<&str> = now.split(' ').collect();
    was.split(' ').filter(|word| now.contains(word)).count()
}

/// Returns whether `count` words are at least half of those of `was`.
fn is_most(was: &str, count: usize) -> bool {
    was.split(' ').count() <= 2 * count
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: &str = "# Progress\n\n## Backlog\n- log the job id at every retry\n<!-- @tag: src-11111111 -->\n\
                        - buy paper\n<!-- @tag: src-22222222 -->\n- my own note\n";

    #[track_caller]
    fn check(now: &[(&str, &str)], expected: Option<&[(&str, &str)]>) {
        let edited = |edits: &[(&str, &str)]| {
            edits.iter().fold(SEEN.to_owned(), |text, (old, new)| text.replacen(old, new, 1))
        };
        let found = with_tags_in_place(Kind::Progress, SEEN, &edited(now));
        assert_eq!(found, expected.map(edited));
    }

    #[test]
    fn a_line_between_an_entry_and_its_tag_is_new() {
        let entry = "- log the job id at every retry\n<!-- @tag: src-11111111 -->\n";
        let split = "- log the job id at every retry\n- buy printers\n- and ink\n<!-- @tag: src-11111111 -->\n";
        let healed = "- log the job id at every retry\n<!-- @tag: src-11111111 -->\n- buy printers\n- and ink\n";
        check(&[(entry, split)], Some(&[(entry, healed)]));
        // An edit of the words is one.
        check(&[("at every retry", "at each retry")], None);
        check(&[("log the job id at every retry", "count the jobs")], None);
    }

    #[test]
    fn a_tag_goes_with_its_words() {
        check(
            &[("- buy paper\n", "")],
            Some(&[("- buy paper\n<!-- @tag: src-22222222 -->\n", "")]),
        );
        check(
            &[("- buy paper\n", "- \n")],
            Some(&[("- buy paper\n<!-- @tag: src-22222222 -->\n", "")]),
        );
        // Two entries in one line.
        check(
            &[(
                "retry\n<!-- @tag: src-11111111 -->\n- buy paper\n",
                "retry, buy paper\n<!-- @tag: src-11111111 -->\n",
            )],
            None,
        );
    }

    #[test]
    fn the_first_entry_below_a_heading_takes_its_tag_along() {
        let entry = "- log the job id at every retry\n<!-- @tag: src-11111111 -->\n";
        check(&[("- log the job id at every retry\n", "")], Some(&[(entry, "")]));
    }
}
