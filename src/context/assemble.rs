//! Assembly of the block: each part is cut to its own bound, then to the room that is left.

use super::budget::{Budget, Kind, Size};
use super::conversation;
use super::fence::{self, CLOSE, OPEN, OPENED, PREAMBLE};
use super::fit::{Fitted, fit};
use super::material::{Decision, Document, Material, Section};
use crate::domain::Tokens;
use crate::privacy::{Gate, Redacted, Woven};
use serde::Serialize;
use std::cmp::Reverse;

/// Maximum length of the mark for omitted parts, in characters, with its line ends.
const MARK_CHARS_MAX: usize = 40;
/// Name of the list of decisions.
const INDEX: &str = "decisions/";

/// Block that a session starts with.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Block {
    /// Text, ending with a line end; empty if nothing is known or nothing fits.
    pub text: Redacted,
    /// Length in tokens: a quarter of its characters.
    pub tokens: Tokens,
    /// Maximum length.
    pub tokens_max: Tokens,
    /// Parts in order, omitted ones included.
    pub parts: Vec<Part>,
}

/// A part of a block.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Part {
    /// Kind.
    pub kind: Kind,
    /// Name in the fence.
    pub name: String,
    /// Length with its fence; 0 if omitted.
    pub tokens: Tokens,
    /// Shown entries.
    pub entries: usize,
    /// Omitted entries.
    pub omitted: usize,
}

/// Assembles the block.
///
/// A part is cut at its own bound first, then at what is left of the whole, at the boundaries of entries
/// and with a mark. A decision that does not fit in what is left joins the list of the others. Room is kept
/// for the parts of the conversation by their presence alone, so that their length moves nothing before them.
pub fn assemble(material: &Material, budget: &Budget, gate: &Gate) -> Block {
    let mut block = Assembly::new(budget, gate);
    let conversation = conversation_parts(material);
    let kept = conversation.iter().fold(Size::default(), |kept, (kind, _)| {
        let size = Size::of_tokens(budget.part_tokens(*kind));
        kept + Size { units: size.chars, ..size }
    });
    let whole = block.left;
    // Where they would take all, they get what is left.
    block.left = whole.less(kept).unwrap_or(whole);
    let kept = if block.left == whole { Size::default() } else { kept };
    let files = [
        (Kind::ActiveContext, &material.active_context),
        (Kind::ProductContext, &material.product_context),
        (Kind::Progress, &material.progress),
        (Kind::Patterns, &material.patterns),
    ];
    for (kind, document) in files {
        document.iter().for_each(|document| block.add(kind, document));
    }
    // Of equals the first is the newest.
    if let Some(session) = material.sessions.iter().min_by_key(|it| Reverse(it.score())) {
        block.add(Kind::Session, session);
    }
    block.decisions(&material.decisions);
    material.glossary.iter().for_each(|document| block.add(Kind::Glossary, document));
    block.left += kept;
    conversation.iter().for_each(|(kind, document)| block.add(*kind, document));
    block.finish(budget)
}

/// Parts that do not come from the directory.
fn conversation_parts(material: &Material) -> Vec<(Kind, Document)> {
    let text = |kind, name, text: &Option<Redacted>| {
        text.as_ref().map(|text| (kind, conversation::text(name, text)))
    };
    let dialog = material.dialog.as_ref().map(|block| (Kind::Dialog, conversation::dialog(block)));
    let card = material.card.as_ref().map(|card| (Kind::Card, conversation::card(card)));
    let entities = text(Kind::Entities, "entities", &material.entities);
    let summary = text(Kind::Summary, "summary", &material.summary);
    [dialog, entities, summary, card].into_iter().flatten().collect()
}

struct Assembly<'a> {
    budget: &'a Budget,
    gate: &'a Gate,
    /// Remaining room, without the preamble and the mark for omitted parts.
    left: Size,
    /// Name and text of each shown part.
    shown: Vec<(String, Redacted)>,
    parts: Vec<Part>,
}

impl<'a> Assembly<'a> {
    fn new(budget: &'a Budget, gate: &'a Gate) -> Assembly<'a> {
        let mark = Size { chars: MARK_CHARS_MAX, units: MARK_CHARS_MAX };
        let taken = Size::of(PREAMBLE) + Size { chars: 1, units: 1 } + mark;
        let left = budget.room().less(taken).unwrap_or_default();
        Assembly { budget, gate, left, shown: Vec::new(), parts: Vec::new() }
    }

    fn add(&mut self, kind: Kind, document: &Document) {
        let fitted = self.fits(kind, document, self.left);
        self.push(kind, document, fitted);
    }

    /// Part of `document` that fits into `room` with its fence.
    fn fits(&self, kind: Kind, document: &Document, room: Size) -> Option<Fitted> {
        let room = room.less(fence_size(&fence::name(&document.name, self.gate)))?;
        let most = Size::of_tokens(self.budget.part_tokens(kind));
        fit(document, room.min(most), self.gate)
    }

    fn push(&mut self, kind: Kind, document: &Document, fitted: Option<Fitted>) {
        let name = fence::name(&document.name, self.gate);
        let entries = document.entries();
        let mut part = Part { kind, name, tokens: 0, entries: 0, omitted: entries };
        if let Some(fitted) = fitted {
            let size = fitted.size + fence_size(&part.name);
            self.left = self.left.less(size).unwrap_or_default();
            (part.tokens, part.entries) = (size.tokens(), fitted.entries);
            part.omitted = fitted.omitted;
            self.shown.push((part.name.clone(), fitted.text));
        }
        if entries > 0 {
            self.parts.push(part);
        }
    }

    /// Adds decisions: whole while they fit, the others by a line each.
    fn decisions(&mut self, decisions: &[Decision]) {
        let mut order: Vec<&Decision> = decisions.iter().collect();
        order.sort_by_key(|decision| Reverse(decision.line.score));
        let mut rest = order.as_slice();
        while let [Decision { document: Some(document), .. }, others @ ..] = rest {
            // Within its own bound it may be cut; half a decision for want of room tells nothing.
            let alone = Size { chars: usize::MAX, units: usize::MAX };
            let fitted = self.fits(Kind::Decision, document, alone);
            let name = fence::name(&document.name, self.gate);
            let fits = |it: &Fitted| self.left.less(it.size + fence_size(&name)).is_some();
            let Some(fitted) = fitted.filter(fits) else { break };
            self.push(Kind::Decision, document, Some(fitted));
            rest = others;
        }
        let entries = rest.iter().map(|decision| decision.line.clone()).collect();
        let sections = vec![Section { heading: None, entries }];
        let index = Document { name: Redacted::weave(&[Woven::Ours(INDEX)]), sections };
        self.add(Kind::DecisionIndex, &index);
    }

    fn finish(self, budget: &Budget) -> Block {
        let mut block =
            Block { tokens_max: budget.tokens(), parts: self.parts, ..Block::default() };
        if self.shown.is_empty() {
            return block;
        }
        let mut pieces = vec![Woven::Ours(PREAMBLE), Woven::Ours("\n")];
        for (name, text) in &self.shown {
            pieces.extend([Woven::Ours("\n"), Woven::Ours(OPEN), Woven::Label(name)]);
            pieces.extend([Woven::Ours(OPENED), Woven::Passed(text), Woven::Ours("\n")]);
            pieces.extend([Woven::Ours(CLOSE), Woven::Ours("\n")]);
        }
        let omitted = block.parts.iter().filter(|part| part.entries == 0).count();
        let mark = match omitted {
            0 => String::new(),
            1 => "\n[… 1 part omitted]\n".to_owned(),
            more => format!("\n[… {more} parts omitted]\n"),
        };
        pieces.push(Woven::Label(&mark));
        block.text = Redacted::weave(&pieces);
        block.tokens = Size::of(block.text.as_str()).tokens();
        block
    }
}

/// Size of a part's fence.
fn fence_size(name: &str) -> Size {
    const LINE_ENDS: usize = 3;
    let ends = Size { chars: LINE_ENDS, units: LINE_ENDS };
    Size::of(OPEN) + Size::of(name) + Size::of(OPENED) + Size::of(CLOSE) + ends
}
