//! Tags that an edit left with the wrong words: a person wrote a line between an entry and its tag, emptied an entry, or
//! removed its words but not its tag.

use super::document::{Block, Document, Part, Shape};
use super::edit::Edits;
use super::kind::Kind;
use super::merge::repeated;
use super::tag::{SOURCE, Tag};
use super::units::words;
use std::collections::{HashMap, HashSet};

/// The file with each tag below the words that it stood below when the file was last `seen`. A tag whose words are gone is
/// left out, so that its entry counts as removed. `None` if no tag is astray.
pub(crate) fn with_tags_in_place(kind: Kind, seen: &str, now: &str) -> Option<String> {
    /// A tag that goes may show that another one is astray.
    const ROUNDS_MAX: usize = 8;
    let step = |now: &str| in_place(kind, seen, now).unwrap_or_else(|| now.to_owned());
    Some(repeated(now.to_owned(), ROUNDS_MAX, step)).filter(|mended| mended != now)
}

fn in_place(kind: Kind, seen: &str, now: &str) -> Option<String> {
    let ((before, _), (disk, _)) = (Document::parse(kind, seen), Document::parse(kind, now));
    if disk.is_private() || disk.first(Part::Marker).is_some() {
        return None;
    }
    let known = Known::of(&before, &disk);
    let mut edits = Edits::new(&disk);
    // New lines without a tag, one below the other.
    let mut above: Vec<usize> = Vec::new();
    for (at, block) in disk.blocks.iter().enumerate() {
        let is_entry = matches!(block.part, Part::Entry(_));
        let tag = sources(&disk, block).next();
        if matches!(block.part, Part::Blank | Part::Comment) {
            continue;
        } else if is_entry && tag.is_none() {
            above.extend(known.is_new(&disk, block).then_some(at));
            continue;
        }
        let spot = tag.filter(|_| is_entry).and_then(|tag| known.spot(&disk, &above, block, tag));
        above.clear();
        if tag.is_none() || disk.holds_private(block) {
            continue;
        }
        let raw = disk.raw(block);
        match spot {
            Some(Spot::Above(place)) => {
                let line = disk.raw(&disk.blocks[place]);
                let end = if line.ends_with('\n') { "" } else { disk.line_end() };
                let (tags, kept) =
                    known.tags_of(&disk, block, &words(disk.body(&disk.blocks[place])));
                edits.replace_raw(place, &format!("{line}{end}{tags}"));
                edits.replace_raw(at, &format!("{}{kept}", disk.body(block)));
            }
            Some(Spot::Gone) => edits.remove(at),
            None => {
                let kept = known.without_lost(&disk, block);
                if kept.is_empty() {
                    edits.remove(at);
                } else if kept.len() < raw.len() {
                    edits.replace_raw(at, &kept);
                }
            }
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

/// Entries when the file was last seen, and now.
struct Known<'t> {
    /// Words of each memory's first entry, by tag.
    words: HashMap<&'t str, String>,
    /// Entries without a tag.
    own: HashSet<String>,
    /// Tags of entries with words now.
    shown: HashSet<&'t str>,
    /// Words of the entries now that have no tag and were not there.
    new: Vec<String>,
}

impl<'t> Known<'t> {
    fn of(before: &Document<'t>, disk: &Document<'t>) -> Known<'t> {
        let has_words = |block: &&Block| !words(disk.body(block)).is_empty();
        let shown = disk.entries().filter(has_words);
        let shown = shown.filter_map(|block| sources(disk, block).next()).collect();
        let (words_of, own) = (HashMap::new(), HashSet::new());
        let mut known = Known { words: words_of, own, shown, new: Vec::new() };
        for block in before.entries() {
            let words = words(before.body(block));
            match sources(before, block).next() {
                Some(tag) => _ = known.words.entry(tag).or_insert(words),
                None => _ = known.own.insert(words),
            }
        }
        let new = disk.entries().filter(|block| sources(disk, block).next().is_none());
        let new = new.filter(|block| known.is_new(disk, block));
        known.new = new.map(|block| words(disk.body(block))).collect();
        known
    }

    /// Returns whether an entry without a tag of a memory was not there when the file was last seen.
    fn is_new(&self, disk: &Document<'_>, block: &Block) -> bool {
        let is_ours = || disk.tags(block).any(|tag| tag.ours().is_some());
        !disk.holds_private(block) && !is_ours() && !self.own.contains(&words(disk.body(block)))
    }

    /// Place of the words of an entry with this tag, if they are not there: in a line above, or nowhere.
    fn spot(&self, disk: &Document<'_>, above: &[usize], block: &Block, tag: &str) -> Option<Spot> {
        let (was, now) = (self.words.get(tag)?, words(disk.body(block)));
        if block.part == Part::Entry(Shape::Row) || *was == now {
            return None;
        }
        let share = |at: &usize| shared(was, &words(disk.body(&disk.blocks[*at])));
        let best = above.iter().copied().max_by_key(share);
        let best = best.filter(|at| is_nearly(was, share(at)) && shared(was, &now) < share(at));
        best.map(Spot::Above).or(now.is_empty().then_some(Spot::Gone))
    }

    /// The lines with tags of a block: those up to the tag of a memory whose words are `above`, and the others.
    fn tags_of(&self, disk: &Document<'_>, block: &Block, above: &str) -> (String, String) {
        let (mut moved, mut kept, mut own) = (String::new(), String::new(), String::new());
        let tags = disk.raw(block).get(disk.body(block).len()..).unwrap_or_default();
        for line in tags.split_inclusive('\n') {
            own.push_str(line);
            let Some(tag) = source(line) else { continue };
            let is_above = |was: &String| is_nearly(was, shared(was, above));
            let side =
                if self.words.get(tag).is_some_and(is_above) { &mut moved } else { &mut kept };
            side.push_str(&std::mem::take(&mut own));
        }
        kept.push_str(&own);
        (moved, kept)
    }

    /// A block without the tags of memories whose words are nowhere: of a line below the entry, which is as it was, or
    /// below a heading. A decision record is one memory.
    fn without_lost(&self, disk: &Document<'_>, block: &Block) -> String {
        let (raw, body) = (disk.raw(block), disk.body(block));
        let first = sources(disk, block).next();
        let was = first.and_then(|tag| self.words.get(tag));
        let is_entry = matches!(block.part, Part::Entry(_));
        if disk.kind == Kind::Decision || is_entry && was.is_none_or(|was| *was != words(body)) {
            return raw.to_owned();
        }
        let is_lost = |line: &&str| {
            let tag = source(line).filter(|tag| !self.shown.contains(tag));
            let was = tag.and_then(|tag| self.words.get(tag));
            was.is_some_and(|was| !self.new.iter().any(|now| is_nearly(was, 2 * shared(was, now))))
        };
        let tags = raw.get(body.len()..).unwrap_or_default();
        let (body, tags) = if block.part == Part::StrayTag { ("", raw) } else { (body, tags) };
        body.split_inclusive('\n')
            .chain(tags.split_inclusive('\n').filter(|it| !is_lost(it)))
            .collect()
    }
}

/// Tag of a memory on a line.
fn source(line: &str) -> Option<&str> {
    Tag::of_line(line)?.ours().filter(|tag| tag.starts_with(SOURCE))
}

/// Tags of memories below a block, or of the block itself.
fn sources<'t>(document: &Document<'t>, block: &Block) -> impl Iterator<Item = &'t str> {
    let body = if block.part == Part::StrayTag { 0 } else { document.body(block).len() };
    let tags = document.raw(block).get(body..).unwrap_or_default();
    tags.lines().filter_map(source)
}

/// Number of words of `was` that are in `now`.
fn shared(was: &str, now: &str) -> usize {
    let now: HashSet<&str> = now.split(' ').collect();
    was.split(' ').filter(|word| now.contains(word)).count()
}

/// Returns whether `count` words are nearly all of those of `was`.
fn is_nearly(was: &str, count: usize) -> bool {
    9 * was.split(' ').count() <= 10 * count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn lines_that_change_places_keep_their_tags() {
        let [one, other] = ["- log the job id at every retry\n", "- buy paper\n"];
        let [first, second] = ["<!-- @tag: src-11111111 -->\n", "<!-- @tag: src-22222222 -->\n"];
        let both = format!("{one}{first}{other}{second}");
        let swapped = format!("{one}{other}{first}{second}");
        check(&[(&both, &swapped)], Some(&[]));
        // Taken elsewhere without its tag.
        let elsewhere = format!("{one}{first}{second}- my own note\n\n## Completed\n{other}");
        check(&[(&format!("{both}- my own note\n"), &elsewhere)], None);
    }

    #[test]
    fn the_first_entry_below_a_heading_takes_its_tag_along() {
        let entry = "- log the job id at every retry\n<!-- @tag: src-11111111 -->\n";
        check(&[("- log the job id at every retry\n", "")], Some(&[(entry, "")]));
    }

    proptest! {
        #[test]
        fn no_line_of_a_person_is_lost_and_once_is_enough(
            order in proptest::collection::vec((0..6_usize, any::<bool>(), 0..4_usize), 0..12),
        ) {
            let entries = ["log the job id", "buy paper", "- ", "call Ana about paper", "", "## More"];
            let new = ["", "- a note of mine", "Some words", "| a | b |"];
            let mut now = "# Progress\n\n## Backlog\n".to_owned();
            for (at, is_tagged, own) in order {
                now.push_str(&format!("{}{}\n", if at < 2 || at == 3 { "- " } else { "" }, entries[at]));
                now.push_str(new[own]);
                now.push('\n');
                if is_tagged {
                    now.push_str(&format!("<!-- @tag: src-{}1111111 -->\n", at % 2 + 1));
                }
            }
            let lines = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|it| source(it).is_none() && !words(it).is_empty());
                let mut lines: Vec<String> = lines.map(str::to_owned).collect();
                lines.sort();
                lines
            };
            if let Some(mended) = with_tags_in_place(Kind::Progress, SEEN, &now) {
                prop_assert_eq!(lines(&mended), lines(&now));
                let again = with_tags_in_place(Kind::Progress, SEEN, &mended);
                prop_assert!(again.as_ref().is_none_or(|it| *it == mended), "{now}\n--\n{mended}\n--\n{again:?}");
            }
        }
    }
}
