//! Input of a block. Everything here is redacted and public; private documents are left out by the
//! caller.

use super::budget::Kind;
use crate::memory_card::Card;
use crate::privacy::{Redacted, Woven};

/// A paragraph, list item or table row that is shown whole or not at all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Entry {
    /// Text without a trailing line end.
    pub text: Redacted,
    /// Text without its reason, for a part that has no room for all of its entries; `None` if it has none.
    pub short: Option<Redacted>,
    /// Search score; 0 without a query. Entries with higher scores are kept first, then earlier
    /// ones.
    pub score: u32,
}

/// A heading and its entries.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Section {
    /// Heading line with its marks; shown if one of its entries is.
    pub heading: Option<Redacted>,
    /// Entries in order.
    pub entries: Vec<Entry>,
}

/// Entries of the memory directory of one kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group {
    /// Kind.
    pub kind: Kind,
    /// Sections in order.
    pub sections: Vec<Section>,
}

/// Everything that a block may show.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Material {
    /// The memory directory, in the order of the block.
    pub groups: Vec<Group>,
    /// Recent turns of the dialog.
    pub dialog: Option<Redacted>,
    /// Known entities of the conversation.
    pub entities: Option<Redacted>,
    /// Summary of the conversation.
    pub summary: Option<Redacted>,
    /// Card of the conversation.
    pub card: Option<Card>,
}

impl Material {
    /// Parts that do not come from the directory, as sections whose lines are entries.
    pub(super) fn conversation(&self) -> Vec<(Kind, Vec<Section>)> {
        let Material { groups: _, dialog: turns, entities, summary, card: of_talk } = self;
        let dialog = turns.as_ref().map(|block| (Kind::Dialog, dialog(block)));
        let entities = entities.as_ref().map(|it| (Kind::Entities, text(it)));
        let summary = summary.as_ref().map(|it| (Kind::Summary, text(it)));
        let card = of_talk.as_ref().map(|it| (Kind::Card, card(it)));
        [dialog, entities, summary, card].into_iter().flatten().collect()
    }
}

/// Recent turns: the first line is the heading; the last lines, the newest turns, have the highest
/// score.
fn dialog(block: &Redacted) -> Vec<Section> {
    let mut lines = lines(block);
    let heading = (lines.len() > 1).then(|| lines.remove(0));
    let entries =
        (1..).zip(lines).map(|(score, text)| Entry { text, score, ..Entry::default() }).collect();
    vec![Section { heading, entries }]
}

/// Text whose first lines matter most: known entities, a summary.
fn text(text: &Redacted) -> Vec<Section> {
    let entries = lines(text).into_iter().map(|text| Entry { text, ..Entry::default() }).collect();
    vec![Section { heading: None, entries }]
}

fn card(card: &Card) -> Vec<Section> {
    let fields: [(&'static str, &[Redacted]); 6] = [
        ("began with", &card.summary_bullets),
        ("decisions", &card.decisions),
        ("to do", &card.todos),
        ("entities", &card.entities),
        ("keywords", &card.keywords),
        ("quotes", &card.notable_quotes),
    ];
    let entry = |text| Entry { text, ..Entry::default() };
    let mut sections = vec![Section { heading: None, entries: vec![entry(card.title.clone())] }];
    for (name, items) in fields.into_iter().filter(|(_, items)| !items.is_empty()) {
        let heading = Some(Redacted::weave(&[Woven::Ours(name), Woven::Ours(":")]));
        let item = |text| entry(Redacted::weave(&[Woven::Ours("- "), Woven::Passed(text)]));
        sections.push(Section { heading, entries: items.iter().map(item).collect() });
    }
    sections
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
