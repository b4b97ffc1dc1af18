//! Parts that do not come from the memory directory, as sections whose lines are entries.

use super::material::{Entry, Section};
use crate::memory_card::Card;
use crate::privacy::{Redacted, Woven};

/// Recent turns: the first line is the heading; the last lines, the newest turns, have the highest
/// score.
pub(super) fn dialog(block: &Redacted) -> Vec<Section> {
    let mut lines = lines(block);
    let heading = (lines.len() > 1).then(|| lines.remove(0));
    let entries = (1..).zip(lines).map(|(score, text)| Entry { text, score }).collect();
    vec![Section { heading, entries }]
}

/// Text whose first lines matter most: known entities, a summary.
pub(super) fn text(text: &Redacted) -> Vec<Section> {
    let entries = lines(text).into_iter().map(|text| Entry { text, score: 0 }).collect();
    vec![Section { heading: None, entries }]
}

pub(super) fn card(card: &Card) -> Vec<Section> {
    let fields: [(&'static str, &[Redacted]); 6] = [
        ("began with", &card.summary_bullets),
        ("decisions", &card.decisions),
        ("to do", &card.todos),
        ("entities", &card.entities),
        ("keywords", &card.keywords),
        ("quotes", &card.notable_quotes),
    ];
    let title = Section { heading: None, entries: vec![entry(&card.title)] };
    let sections =
        fields.into_iter().filter(|(_, items)| !items.is_empty()).map(|(name, items)| {
            let heading = Some(Redacted::weave(&[Woven::Ours(name), Woven::Ours(":")]));
            let item = |text| entry(&Redacted::weave(&[Woven::Ours("- "), Woven::Passed(text)]));
            Section { heading, entries: items.iter().map(item).collect() }
        });
    [title].into_iter().chain(sections).collect()
}

fn entry(text: &Redacted) -> Entry {
    Entry { text: text.clone(), score: 0 }
}

fn lines(text: &Redacted) -> Vec<Redacted> {
    let mut from = 0;
    let ranges = text.as_str().split_inclusive('\n').map(|line| {
        let range = from..from + line.trim_end().len();
        from += line.len();
        range
    });
    ranges.filter(|range| !range.is_empty()).map(|range| text.cut(range)).collect()
}
