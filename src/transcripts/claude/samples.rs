//! Known contents of the shared transcripts.

use super::read;
use crate::domain::{EntryKind, Speaker};
use crate::transcripts::testing;

/// Human prompts by file, from the list beside the transcripts. That list counts a blocked prompt
/// that was sent again twice, which counts once here, and accepted plans, which the agent wrote.
const PROMPTS: [(&str, usize); 25] = [
    ("entire-cli-slow-cli-startup-debug-v2.0.64", 2),
    ("entire-cli-test-repo-skill-gitignore-fix", 4 - 1),
    ("entire-cli-hook-wrapper-script-design", 11),
    ("entire-cli-pty-test-approach", 6),
    ("entire-cli-recurring-error-compaction", 5),
    ("entire-cli-test-repo-followup-v2.0.76", 7),
    ("entire-cli-tiny-subfolder-question", 1),
    ("entire-cli-tiny-mit-license", 1),
    ("entire-cli-lint-fix", 1),
    ("entire-cli-go-version-bump", 1),
    ("entire-cli-changelog-option-c", 4),
    ("entire-cli-secrets-redacted-chat", 4),
    ("entire-cli-review-feedback-small", 4),
    ("entire-cli-posthog-command-args", 5),
    ("entire-cli-resumed-two-sessionids", 3 - 2),
    ("entire-cli-remove-start-command-v2.0.76", 5),
    ("git-sync-dependabot-bump", 5),
    ("git-sync-empty-pack", 3),
    ("entire-graph-revert-duplicate-work", 2),
    ("auth-go-pr-description", 7),
    ("claude-code-log-edge_cases", 5),
    ("claude-code-log-todowrite_examples", 2),
    ("simonw-sample_session", 2),
    ("agent-sessions-all-record-types", 5),
    ("claude-code-merge-conflicts-two-compactions", 36),
];

fn samples() -> impl Iterator<Item = (String, Vec<u8>)> {
    let folders = ["claude-code", "claude-code/fixtures", "large"];
    let all = folders.into_iter().flat_map(testing::logs);
    all.filter(|(name, _)| !name.starts_with("codex"))
}

#[test]
fn shared_transcripts_have_the_prompts_they_are_said_to_have() {
    for (name, bytes) in samples() {
        let items = testing::read(read, &bytes);
        let prompts = testing::count(&items, Speaker::Person, EntryKind::Prompt);
        let expected = PROMPTS.iter().find(|(known, _)| *known == name);
        assert_eq!(Some((name.as_str(), prompts)), expected.copied());
    }
}

#[test]
fn shared_transcripts_keep_the_invariants() {
    for (name, bytes) in samples() {
        let items = testing::read(read, &bytes);
        testing::invariants(&name, &items, bytes.len());
    }
}

#[test]
fn shared_transcripts_hold_the_hidden_words_of_people() {
    let counts = [
        ("entire-cli-pty-test-approach", EntryKind::Rejection, 4),
        ("entire-cli-recurring-error-compaction", EntryKind::Steering, 1),
        ("claude-code-merge-conflicts-two-compactions", EntryKind::Steering, 3),
        ("claude-code-merge-conflicts-two-compactions", EntryKind::Answer, 1),
        ("claude-code-merge-conflicts-two-compactions", EntryKind::Rejection, 4),
    ];
    for (name, bytes) in samples() {
        let items = testing::read(read, &bytes);
        for (_, kind, expected) in counts.iter().filter(|(known, ..)| *known == name) {
            let got = testing::count(&items, Speaker::Person, *kind);
            assert_eq!(got, *expected, "{name} {kind:?}");
        }
    }
}

#[test]
fn damaged_transcripts_never_panic() {
    testing::damaged(read, samples());
}
