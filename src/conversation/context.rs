//! The context of slices: entries go in, and what the strategy remembers of them comes out as text.

use super::budget::{render, within};
use super::{Absorbed, ConversationMemory, Line, MemoryError, Settings, create, from_json};
use crate::domain::{Entry, Format, Tokens};
use crate::privacy::{Gate, Redacted};
use serde::{Deserialize, Serialize};

/// What a slice of a session can be told of the entries before it. No model is asked: a summary that is
/// due is made by rule, so that the same entries give the same text.
#[derive(Debug)]
pub struct Context {
    memory: Box<dyn ConversationMemory>,
    line: Line,
    tokens_max: Tokens,
    gate: Gate,
}

/// A context as it is written down.
#[derive(Deserialize, Serialize)]
struct Saved {
    line: Line,
    memory: String,
}

impl Context {
    /// The context of a session that begins.
    ///
    /// # Errors
    /// If the settings name a limit that the strategy cannot have.
    pub fn new(settings: &Settings, gate: &Gate) -> Result<Context, MemoryError> {
        Ok(Context {
            memory: create(settings.strategy, &settings.limits, None)?,
            line: Line::default(),
            tokens_max: settings.context_tokens,
            gate: gate.clone(),
        })
    }

    /// Takes the next entry of a transcript of `format`; what is no message changes nothing.
    pub fn push(&mut self, entry: &Entry, format: Format) {
        if let Some(message) = self.line.message(entry, format) {
            // What is wrong with a message's metadata is no matter of an entry: it has none.
            let _ = self.memory.add_message(message);
            summarise_by_rule(self.memory.as_mut(), &self.gate);
        }
    }

    /// All of it as JSON, for [`Context::from_json`].
    pub fn to_json(&self) -> String {
        let saved = Saved { line: self.line, memory: self.memory.to_json() };
        // A line and a text always have a JSON.
        serde_json::to_string(&saved).unwrap_or_default()
    }

    /// The context that [`Context::to_json`] wrote, to go on within a budget of `tokens_max`. Its
    /// strategy and limits are those that it was made with.
    ///
    /// # Errors
    /// If `text` is something else.
    pub fn from_json(text: &str, tokens_max: Tokens, gate: &Gate) -> Result<Context, MemoryError> {
        let unreadable = |_| MemoryError::Unreadable("expected line and memory".to_owned());
        let Saved { line, memory } = serde_json::from_str(text).map_err(unreadable)?;
        Ok(Context { memory: from_json(&memory, gate)?, line, tokens_max, gate: gate.clone() })
    }

    /// What goes before the next slice, within the budget; none if that is nothing.
    pub fn text(&self) -> Option<Redacted> {
        render(&within(&self.memory.messages(), self.tokens_max))
    }
}

/// Absorbs a summary by rule where one is due; says whether it was. One is enough after each message.
pub fn summarise_by_rule(memory: &mut dyn ConversationMemory, gate: &Gate) -> bool {
    let Some(request) = memory.due() else { return false };
    let summary = request.by_rule(gate);
    memory.absorb(&request, &summary) == Absorbed::Taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Limits, MemoryType};
    use crate::domain::testing::said;
    use crate::domain::{EntryKind, Speaker};

    fn entry(ordinal: u32, speaker: Speaker, kind: EntryKind, text: &str) -> Entry {
        said(ordinal, (speaker, kind), Gate::new(&[]).redact(text))
    }

    const FIRST: &str = "[User] Fix the importer of Mira.";
    const LAST: &str = "[Assistant] It reads CP1252 now.\n\n[User] Thanks.";

    /// The context after these entries.
    #[track_caller]
    fn check(strategy: MemoryType, context_tokens: Tokens, expected: Option<&str>) {
        let limits = Limits { window_size: 2, summary_threshold: 2, ..Limits::default() };
        let settings = Settings { strategy, limits, context_tokens };
        let mut context = Context::new(&settings, &Gate::new(&[])).unwrap();
        assert_eq!(context.text(), None, "nothing goes before the first slice");
        let entries = [
            entry(0, Speaker::Person, EntryKind::Prompt, "Fix the importer of Mira."),
            entry(1, Speaker::Tool, EntryKind::ToolResult, "4,000 lines"),
            entry(2, Speaker::Assistant, EntryKind::Text, "It reads CP1252 now."),
            entry(3, Speaker::Person, EntryKind::Prompt, "Thanks."),
        ];
        entries.iter().for_each(|entry| context.push(entry, Format::ClaudeCode));
        assert_eq!(context.text().as_ref().map(Redacted::as_str), expected, "{strategy}");
    }

    #[test]
    fn entries_before_a_slice_are_its_context() {
        check(MemoryType::Window, 100, Some(LAST));
        check(MemoryType::Buffer, 100, Some(&format!("{FIRST}\n\n{LAST}")));
        let known =
            "[System] Known entities:\n- Mira: {\"mentions\": 1}\n- CP1252: {\"mentions\": 1}";
        check(MemoryType::Entity, 100, Some(&format!("{known}\n\n{FIRST}\n\n{LAST}")));
        let summary = "[System] Previous conversation summary: - user: Fix the importer of Mira.\n\
                       - assistant: It reads CP1252 now.";
        check(MemoryType::Summary, 100, Some(&format!("{summary}\n\n[User] Thanks.")));
    }

    #[test]
    fn a_context_keeps_to_its_budget() {
        check(MemoryType::Buffer, 26, Some(&format!("{FIRST}\n\n{LAST}")));
        check(MemoryType::Buffer, 25, Some("[System] [… 3 messages left out …]"));
        check(MemoryType::Buffer, 0, None);
    }
}
