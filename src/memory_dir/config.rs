//! `.memory-config.md`: settings of a directory, as front matter. An invalid value is a finding,
//! and its default is used.

use super::budget::Preset;
use super::document::{Document, Part};
use super::kind::Kind;
use crate::domain::{Finding, Severity, named};

/// Share of the context window from which memory is synced, in percent (§4.1).
pub(crate) const AUTO_SYNC_PERCENT: u32 = 60;
/// Share of the context window from which prompts wait for a sync, in percent (§4.1).
pub(crate) const HARD_BLOCK_PERCENT: u32 = 80;

named! {
    /// Amount of output of a sync.
    #[derive(Default)]
    pub(crate) OutputStyle {
        /// Totals, and what needs a person.
        Quiet = "quiet",
        #[default]
        Normal = "normal",
        /// Every memory and file, with the rule.
        Explanatory = "explanatory",
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MemoryConfig {
    /// True if agents may leave notes with the tool `note`.
    pub suggest_memories: bool,
    pub auto_load: bool,
    pub output_style: OutputStyle,
    pub token_budget: Preset,
    /// In percent of the context window; above 0 and at most `hard_block_threshold`.
    pub auto_sync_threshold: u32,
    pub hard_block_threshold: u32,
    /// Context window from the file, in tokens; otherwise that of the model, or [`WINDOW_TOKENS`].
    pub context_window_tokens: Option<u32>,
}

impl Default for MemoryConfig {
    fn default() -> MemoryConfig {
        MemoryConfig {
            suggest_memories: true,
            auto_load: true,
            output_style: OutputStyle::Normal,
            token_budget: Preset::Standard,
            auto_sync_threshold: AUTO_SYNC_PERCENT,
            hard_block_threshold: HARD_BLOCK_PERCENT,
            context_window_tokens: None,
        }
    }
}

const KEYS: [&str; 7] = [
    "suggest_memories", "auto_load", "output_style", "token_budget", "auto_sync_threshold",
    "hard_block_threshold", "context_window_tokens",
];

impl MemoryConfig {
    /// Parses the file; an empty one gives the defaults.
    pub(crate) fn parse(text: &str) -> (MemoryConfig, Vec<Finding>) {
        let mut reader = Reader { config: MemoryConfig::default(), findings: Vec::new(), line: 1 };
        let (document, odd) = Document::parse(Kind::Config, text);
        reader.findings.extend(odd);
        let front = document.blocks.first().filter(|block| block.part == Part::FrontMatter);
        let Some(front) = front else {
            if !text.trim().is_empty() {
                let expected = "expected settings between two lines ---";
                reader.warn("config-front-matter", expected.into());
            }
            return (reader.config, reader.findings);
        };
        let mut seen = Vec::new();
        for (line, content) in (1..).zip(document.raw(front).lines()) {
            reader.line = line;
            let content = content.trim_matches(['\u{feff}', ' ', '\t', '\r']);
            if content.is_empty() || content.starts_with('#') || matches!(content, "---" | "...") {
                continue;
            }
            let Some((key, value)) = content.split_once(':') else {
                reader.warn("config-line", "expected `key: value`".into());
                continue;
            };
            let (key, value) = (unquoted(key), unquoted(without_comment(value)));
            if seen.contains(&key) {
                reader.warn("config-key-twice", format!("`{key}` again: the last one counts"));
            }
            seen.push(key);
            reader.key(key, value);
        }
        reader.line = front.line;
        reader.thresholds();
        (reader.config, reader.findings)
    }
}

fn without_comment(value: &str) -> &str {
    let value = value.trim_start();
    if value.starts_with('#') {
        return "";
    }
    let comment = value.find(" #").or_else(|| value.find("\t#"));
    value.get(..comment.unwrap_or(value.len())).unwrap_or(value)
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\'']).trim()
}

struct Reader {
    config: MemoryConfig,
    findings: Vec<Finding>,
    line: u32,
}

impl Reader {
    fn warn(&mut self, rule: &'static str, detail: String) {
        self.findings.push(Finding::new(Severity::Warning, rule, self.line, detail));
    }

    fn key(&mut self, key: &str, value: &str) {
        const PERCENT: &str = "a number of per cent";
        const TRUTH: &str = "true or false";
        let config = &mut self.config;
        let (lower, percent) = (value.to_ascii_lowercase(), value.parse().ok());
        let (is_set, expected) = match key {
            "suggest_memories" => (set(&mut config.suggest_memories, truth(&lower)), TRUTH),
            "auto_load" => (set(&mut config.auto_load, truth(&lower)), TRUTH),
            "output_style" => {
                let style = OutputStyle::of_name(&lower);
                (set(&mut config.output_style, style), "quiet, normal, explanatory")
            }
            "token_budget" if lower == "compact" => {
                config.token_budget = Preset::Economy;
                let detail = "`compact` is called `economy` now: write that";
                let notice = Finding::new(Severity::Info, "config-alias", self.line, detail);
                return self.findings.push(notice);
            }
            "token_budget" => {
                let preset = Preset::of_name(&lower);
                (set(&mut config.token_budget, preset), "economy, light, standard, detailed")
            }
            "auto_sync_threshold" => (set(&mut config.auto_sync_threshold, percent), PERCENT),
            "hard_block_threshold" => (set(&mut config.hard_block_threshold, percent), PERCENT),
            "context_window_tokens" => {
                let tokens = value.replace('_', "").parse().ok().filter(|tokens| *tokens > 0_u32);
                (set(&mut config.context_window_tokens, tokens.map(Some)), "a number above 0")
            }
            _ => {
                let known = KEYS.join(", ");
                return self.warn("config-unknown-key", format!("unknown; expected {known}"));
            }
        };
        if !is_set {
            self.warn("config-value", format!("`{key}`: expected {expected}; the default is used"));
        }
    }

    fn thresholds(&mut self) {
        let (auto, hard) = (self.config.auto_sync_threshold, self.config.hard_block_threshold);
        if 0 < auto && auto <= hard && hard <= 100 {
            return;
        }
        self.config.auto_sync_threshold = AUTO_SYNC_PERCENT;
        self.config.hard_block_threshold = HARD_BLOCK_PERCENT;
        let expected =
            "expected 0 < auto_sync_threshold <= hard_block_threshold <= 100; 60 and 80 are used";
        self.warn("config-thresholds", expected.into());
    }
}

/// Sets a value that could be read; false for another one.
fn set<T>(place: &mut T, value: Option<T>) -> bool {
    value.map(|it| *place = it).is_some()
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> (MemoryConfig, Vec<String>) {
        let (config, findings) = MemoryConfig::parse(text);
        (config, findings.iter().map(|it| format!("{}:{}", it.line, it.rule)).collect())
    }

    #[test]
    fn every_key_of_the_sample_is_read() {
        let (config, odd) = rules(
            "---\nsuggest_memories: false    # Whether\nauto_load: \"no\"\noutput_style: explanatory # how\n\
             token_budget: detailed\nauto_sync_threshold: 30    # early\nhard_block_threshold: 50\n\
             context_window_tokens: 1_000_000\n---\n",
        );
        assert_eq!(odd, [] as [&str; 0]);
        assert!(!config.auto_load && !config.suggest_memories);
        assert_eq!(config.output_style, OutputStyle::Explanatory);
        assert_eq!(config.token_budget, Preset::Detailed);
        assert_eq!((config.auto_sync_threshold, config.hard_block_threshold), (30, 50));
        assert_eq!(config.context_window_tokens, Some(1_000_000));
    }

    #[test]
    fn what_is_not_said_is_the_default() {
        assert_eq!(rules(""), (MemoryConfig::default(), vec![]));
        assert_eq!(rules("---\n---\n").0, MemoryConfig::default());
    }

    #[test]
    fn what_cannot_be_used_is_said_and_the_default_is_used() {
        let (config, odd) = rules(
            "---\ntoken_budget: huge\nauto_load: perhaps\ncontext_window_tokens: 0\nfavourite: x\nwords\n---\n",
        );
        assert_eq!(config, MemoryConfig::default());
        let expected = [
            "2:config-value", "3:config-value", "4:config-value", "5:config-unknown-key",
            "6:config-line",
        ];
        assert_eq!(odd, expected);
        assert_eq!(rules("words").1, ["1:config-front-matter"]);
    }

    #[test]
    fn thresholds_out_of_order_are_those_of_the_default() {
        for text in
            ["auto_sync_threshold: 0", "auto_sync_threshold: 81", "hard_block_threshold: 101"]
        {
            let (config, odd) = rules(&format!("---\n{text}\n---\n"));
            assert_eq!((config.auto_sync_threshold, config.hard_block_threshold), (60, 80));
            assert_eq!(odd, ["1:config-thresholds"]);
        }
        assert!(rules("---\nauto_sync_threshold: 80\n---\n").1.is_empty());
    }

    #[test]
    fn compact_is_economy_with_a_notice() {
        let (config, odd) = rules("---\ntoken_budget: compact\n---\n");
        assert_eq!(
            (config.token_budget, odd),
            (Preset::Economy, vec!["2:config-alias".to_owned()])
        );
    }
}
