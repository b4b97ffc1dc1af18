//! What is known of one turn, and the words for it.

use super::cut::{Size, within};
use super::fold::fold;
use super::phrase::{is_smalltalk, wants_doing};
use super::{CompactSummary, Rules};
use crate::privacy::{Redacted, Woven};
use serde::{Deserialize, Serialize};

/// The longest quote of a person's words, in characters.
pub(super) const SAID_CHARS_MAX: usize = 60;
/// The longest quote of a question, in characters.
const QUESTION_CHARS_MAX: usize = 30;
/// The longest name of a tool, an intent or a route, in characters.
pub(super) const NAME_CHARS_MAX: usize = 40;
/// Tools that are named; the others are counted.
const TOOLS_NAMED_MAX: usize = 3;

/// What an assistant waits for.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct Asked {
    /// Whether it waits for leave to do something.
    pub leave: bool,
    /// The question that it asked.
    pub question: Option<Redacted>,
}

/// What happened in one turn: filled from a transcript, or by whoever routes the turns of a dialog.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct Turn {
    /// The person's words.
    pub said: Redacted,
    /// Where the words were routed, such as `calendar` or `smalltalk`.
    pub route: Option<Redacted>,
    /// What they want there, such as `query` or `create`.
    pub intent: Option<Redacted>,
    /// The tools that were called, in order.
    pub tools: Vec<Redacted>,
    /// Whether the assistant said something.
    pub replied: bool,
    /// What the assistant waits for, as the turn stands.
    pub asked: Asked,
}

impl Turn {
    /// The turn in a sentence or two; its number is given by the dialog that it is added to.
    pub fn compact(&self, rules: Rules<'_>) -> CompactSummary {
        CompactSummary {
            user_intent: self.user_intent(rules),
            action_taken: self.action_taken(rules),
            pending_items: self.pending_items(rules),
            ..CompactSummary::default()
        }
    }

    fn user_intent(&self, rules: Rules<'_>) -> Redacted {
        let name = |name: &Option<Redacted>| {
            let name = within(name.as_ref()?, Size::chars(NAME_CHARS_MAX), rules.gate);
            let known = !matches!(fold(name.as_str()).as_str(), "" | "none" | "unknown");
            known.then_some(name)
        };
        let (route, intent) = (name(&self.route), name(&self.intent));
        match (&route, &intent) {
            (Some(route), _) if fold(route.as_str()) == "smalltalk" => casual_chat(),
            (Some(route), Some(intent)) => {
                let verb = if wants_doing(intent.as_str()) { "requested " } else { "asked about " };
                let words = [Woven::Passed(route), Woven::Ours(" "), Woven::Passed(intent)];
                Redacted::weave(&[&[Woven::Ours(verb)], &words[..]].concat())
            }
            (Some(_), None) => self.requested(rules),
            (None, _) if is_smalltalk(self.said.as_str()) => casual_chat(),
            (None, _) => self.requested(rules),
        }
    }

    fn requested(&self, rules: Rules<'_>) -> Redacted {
        let said = within(&self.said, Size::chars(SAID_CHARS_MAX), rules.gate);
        if !has_words(said.as_str()) {
            return ours("unclear request");
        }
        Redacted::weave(&[Woven::Ours("requested: "), Woven::Passed(&said)])
    }

    fn action_taken(&self, rules: Rules<'_>) -> Redacted {
        if !self.tools.is_empty() {
            return self.called(rules);
        }
        let asks = self.asked.question.is_some();
        ours(if self.replied && !asks { "responded with chat" } else { "asked for clarification" })
    }

    /// The tools by the last part of their names, each once.
    fn called(&self, rules: Rules<'_>) -> Redacted {
        let mut names: Vec<Redacted> = Vec::new();
        for name in self.tools.iter().map(last_part) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = match names.len().saturating_sub(TOOLS_NAMED_MAX) {
            0 => String::new(),
            more => format!(" +{more}"),
        };
        let cut = |name: &Redacted| within(name, Size::chars(NAME_CHARS_MAX), rules.gate);
        let named: Vec<Redacted> = names.iter().take(TOOLS_NAMED_MAX).map(cut).collect();
        let mut words = vec![Woven::Ours("called ")];
        for (at, name) in named.iter().enumerate() {
            words.push(Woven::Ours(if at == 0 { "" } else { ", " }));
            words.push(Woven::Passed(name));
        }
        words.push(Woven::Label(&more));
        Redacted::weave(&words)
    }

    fn pending_items(&self, rules: Rules<'_>) -> Vec<Redacted> {
        let mut items = Vec::new();
        if self.asked.leave {
            items.push(ours("waiting for confirmation"));
        }
        if let Some(question) = &self.asked.question {
            let question = within(question, Size::chars(QUESTION_CHARS_MAX), rules.gate);
            let words = [Woven::Ours("need: "), Woven::Passed(&question)];
            items.push(if has_words(question.as_str()) {
                Redacted::weave(&words)
            } else {
                ours("need: an answer")
            });
        }
        items
    }
}

/// `list_events` of `calendar.list_events`.
fn last_part(tool: &Redacted) -> Redacted {
    let name = tool.as_str().trim_end_matches('.');
    tool.cut(name.rfind('.').map_or(0, |dot| dot + 1)..name.len())
}

/// Words of our own.
pub(super) fn ours(words: &'static str) -> Redacted {
    Redacted::weave(&[Woven::Ours(words)])
}

fn casual_chat() -> Redacted {
    ours("casual chat")
}

/// Whether anything is said: signs alone say nothing.
pub(super) fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}
