//! Tests over the shared samples: every file is detected correctly, read completely, and has the
//! counts given in its description.

use super::raw::{RawEntry, TranscriptItem};
use super::testing::{items, samples, show_item};
use super::{DetectError, detect};
use crate::domain::{Branch, EntryKind, Format, Outcome, Severity, Skip};
use crate::testing::shared;
use std::fs;
use std::path::{Path, PathBuf};

/// All files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn expected(path: &str) -> Option<Format> {
    const FOLDERS: [(&str, Format); 22] = [
        ("/claude-code", Format::ClaudeCode),
        ("/large/claude", Format::ClaudeCode),
        ("/codex", Format::Codex),
        ("/large/codex", Format::Codex),
        ("/openai-messages/", Format::Openai),
        ("/sharegpt/", Format::Openai),
        ("/anthropic-messages/", Format::Anthropic),
        ("/chatgpt/", Format::Chatgpt),
        ("/aider/", Format::Aider),
        ("/large/aider", Format::Aider),
        ("/specstory/", Format::Specstory),
        ("/gemini-cli/", Format::GeminiCli),
        ("/other-cli/qwen", Format::QwenCode),
        ("/other-cli/openclaw", Format::Pi),
        ("/other-cli/factory-droid", Format::Pi),
        ("/pi/", Format::Pi),
        ("/other-cli/copilot", Format::Copilot),
        ("/openhands/", Format::Openhands),
        ("/swe-agent/", Format::SweAgent),
        ("/otel-genai/semconv", Format::Otel),
        ("/opencode/1", Format::Opencode),
        ("/cursor/", Format::Cursor),
    ];
    let below = path.rsplit_once("/transcripts").map_or(path, |(_, below)| below);
    FOLDERS.iter().find(|(folder, _)| below.starts_with(folder)).map(|(_, format)| *format)
}

#[test]
fn every_sample_is_told_rightly() {
    let Some(folder) = samples() else { return };
    let mut wrong = Vec::new();
    for path in files(&folder) {
        let bytes = fs::read(&path).unwrap();
        let shown = path.to_string_lossy().into_owned();
        // These contain nothing but OpenAI messages.
        if shown.contains("mini-swe-agent") {
            continue;
        }
        // For any length of the beginning, and with both kinds of line ends.
        let crlf = String::from_utf8_lossy(&bytes).replace('\n', "\r\n").into_bytes();
        let cut = bytes.len().min(5_000);
        for head in [bytes.as_slice(), &bytes[..cut], &crlf] {
            for name in [None, Some(name(&path))] {
                let got = detect(head, name.as_deref());
                if got.ok() != expected(&shown) {
                    wrong.push(format!("{shown} ({} bytes): {got:?}", head.len()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_agents_are_named() {
    let Some(folder) = samples() else { return };
    let mut unnamed = Vec::new();
    for path in files(&folder) {
        let shown = path.to_string_lossy().into_owned();
        let skip = ["README.md", "mini-swe-agent", "/schema-", "/opencode/"];
        if expected(&shown).is_some() || skip.iter().any(|part| shown.contains(part)) {
            continue;
        }
        let got = detect(&fs::read(&path).unwrap(), None);
        if !matches!(got, Err(DetectError::LooksLike(_))) {
            unnamed.push(format!("{shown}: {got:?}"));
        }
    }
    assert!(unnamed.is_empty(), "{}", unnamed.join("\n"));
}

struct Counts {
    sessions: usize,
    entries: Vec<RawEntry>,
    items: Vec<TranscriptItem>,
}

/// Reads a sample; panics if it violates an invariant of all files.
fn counts(path: &str) -> Option<Counts> {
    let path = samples()?.join(path);
    let bytes = fs::read(&path).unwrap();
    let format = detect(&bytes, Some(&name(&path))).unwrap();
    let items = items(format, &bytes);
    let mut ids = std::collections::HashSet::new();
    let (mut entries, mut begun) = (Vec::new(), false);
    for item in &items {
        match item {
            TranscriptItem::Session(session) => {
                begun = true;
                assert!(ids.insert(session.native_id.clone()), "twice: {}", session.native_id);
                assert!(!session.native_id.is_empty());
            }
            TranscriptItem::Entry(entry) => {
                assert!(begun, "an entry before its session: {format}");
                // In Markdown, base64 is code that the conversation is about and stays.
                let markdown = matches!(format, Format::Aider | Format::Specstory);
                assert!(markdown || !entry.text.contains(";base64,"), "base64 in {path:?}");
                assert!(entry.line > 0);
                let is_call = matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult);
                assert_eq!(is_call, entry.tool.is_some(), "{}", show_item(item));
                entries.push(entry.clone());
            }
            TranscriptItem::Finding(finding) => {
                assert!(finding.severity < Severity::Error, "{finding}");
            }
        }
    }
    Some(Counts { sessions: ids.len(), entries, items })
}

impl Counts {
    fn of(&self, kind: EntryKind) -> usize {
        self.entries.iter().filter(|entry| entry.kind == kind).count()
    }

    fn findings(&self) -> Vec<String> {
        let findings = self.items.iter().filter(|item| matches!(item, TranscriptItem::Finding(_)));
        findings.map(show_item).collect()
    }
}

#[test]
fn message_files_have_their_sizes() {
    let Some(tau) = counts("openai-messages/tau-bench-airline-12-as-messages.jsonl") else {
        return;
    };
    assert_eq!((tau.sessions, tau.findings().len()), (12, 0));
    let llama = counts("openai-messages/llamafactory-mllm_demo.json").unwrap();
    assert_eq!((llama.sessions, llama.entries.len()), (6, 24));
    let tools = counts("openai-messages/llamafactory-reason_tool_use_demo-filtered.jsonl").unwrap();
    assert_eq!(
        (tools.sessions, tools.of(EntryKind::ToolCall), tools.of(EntryKind::ToolResult)),
        (49, 68, 42)
    );
    let cookbook = counts("anthropic-messages/cookbook-finetune-json-mode-first60.jsonl").unwrap();
    let spoken = cookbook.entries.iter().filter(|entry| entry.skip.is_none()).count();
    assert_eq!((cookbook.sessions, spoken), (60, 120));
    let derived = counts("anthropic-messages/derived-dependabot-bump.json").unwrap();
    assert_eq!(derived.of(EntryKind::ToolCall), 18);
    assert_eq!(derived.of(EntryKind::ToolResult), 17);
    assert_eq!(derived.of(EntryKind::Text), 17);
    let cline = counts("anthropic-messages/cline-sdk-session.messages.json").unwrap();
    assert_eq!((cline.sessions, cline.findings().len()), (1, 0));
    assert!(cline.entries.iter().any(|entry| entry.at.is_some()));
    let sharegpt = counts("sharegpt/fastchat-dummy_conversation.json").unwrap();
    assert_eq!((sharegpt.sessions, sharegpt.entries.len()), (500, 2_000));
    counts("sharegpt/llamafactory-glaive_toolcall_en-first120.json").unwrap();
}

#[test]
fn chatgpt_exports_have_their_sizes() {
    let Some(webshop) = counts("chatgpt/pkuppens-webshop-engineering-conversations.json") else {
        return;
    };
    assert_eq!(webshop.sessions, 7);
    assert_eq!(webshop.of(EntryKind::Prompt), 94);
    let branch = counts("chatgpt/mitkury-branch-conversation.json").unwrap();
    let abandoned = branch.entries.iter().filter(|entry| entry.branch == Branch::Abandoned).count();
    assert_eq!((branch.sessions, abandoned > 0), (1, true));
    let native = counts("chatgpt/fixtures/polylogue-native-conversation-v1.json").unwrap();
    assert!(!native.entries.iter().any(|entry| entry.text.contains("reasoning")));
    for file in [
        "convonaut-conversations.json",
        "pkuppens-misc-conversations.json",
        "fixtures/cass-structured-parts.json",
    ] {
        assert_eq!(counts(&format!("chatgpt/{file}")).unwrap().findings().len(), 0);
    }
}

/// Counts of entries: prompts, texts, calls, results, failed results.
fn sizes(path: &str) -> [usize; 5] {
    let Some(file) = counts(path) else { return [0; 5] };
    let failed = file.entries.iter().filter(|it| it.outcome == Some(Outcome::Failed)).count();
    let kinds = [EntryKind::Prompt, EntryKind::Text, EntryKind::ToolCall, EntryKind::ToolResult];
    let [prompts, texts, calls, results] = kinds.map(|kind| file.of(kind));
    [prompts, texts, calls, results, failed]
}

#[test]
fn clients_have_their_sizes() {
    const SIZES: [(&str, [usize; 5]); 17] = [
        ("pi/auth-go-security-review.jsonl", [16, 16, 194, 193, 10]),
        ("gemini-cli/entire-cli-add-text.json", [2, 2, 2, 2, 0]),
        ("gemini-cli/fixtures/gemini-json-large.json", [2, 2, 2, 2, 1]),
        ("other-cli/qwen-code.jsonl", [1, 1, 1, 1, 0]),
        ("other-cli/openclaw.jsonl", [1, 2, 2, 2, 0]),
        ("other-cli/factory-droid.jsonl", [2, 3, 1, 1, 0]),
        ("other-cli/copilot-events.jsonl", [2, 5, 4, 4, 3]),
        ("cursor/fixtures/cursor-agent-transcript.jsonl", [3, 4, 2, 2, 0]),
        ("openhands/traj-basic.json", [1, 2, 1, 1, 0]),
        ("openhands/traj-basic-gui-mode.json", [1, 5, 4, 4, 0]),
        ("openhands/multi-swe-bench-output.jsonl", [3, 103, 101, 101, 19]),
        ("openhands/resolver-output-old-format.jsonl", [2, 26, 24, 24, 0]),
        ("swe-agent/marshmallow-function-calling.traj", [1, 11, 11, 11, 1]),
        ("swe-agent/function-calling-simple.traj", [1, 5, 5, 5, 0]),
        ("swe-agent/ctf-rock.traj", [1, 12, 12, 12, 0]),
        ("swe-agent/pydicom-1458-gpt4.traj", [1, 12, 12, 12, 3]),
        ("otel-genai/semconv-1.40-example-attributes.json", [3, 5, 2, 2, 0]),
    ];
    if samples().is_none() {
        return;
    }
    let mut wrong = Vec::new();
    for (path, expected) in SIZES {
        let got = sizes(path);
        if got != expected {
            wrong.push(format!("{path}: {got:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Speaker, kind, outcome and exit code of an entry; `~` marks one that is skipped.
fn role(entry: &RawEntry) -> String {
    let outcome = entry.outcome.map(|it| format!(".{}", it.name())).unwrap_or_default();
    let code = entry.exit_code.map(|code| format!(".{code}")).unwrap_or_default();
    let skip = if entry.skip.is_some() { "~" } else { "" };
    format!("{}.{}{outcome}{code}{skip}", entry.speaker.name(), entry.kind.name())
}

#[test]
fn transcripts_of_real_clients_are_read_entry_by_entry() {
    let Some(root) = shared("real-clients/transcripts") else { return };
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/src/transcripts/real-clients.txt");
    let expected = fs::read_to_string(list).unwrap();
    let mut got = String::new();
    for path in expected.lines().filter_map(|line| line.split(' ').next()) {
        let bytes = fs::read(root.join(path)).unwrap();
        got += path;
        for item in items(detect(&bytes, None).unwrap(), &bytes) {
            match &item {
                TranscriptItem::Session(_) => {}
                TranscriptItem::Entry(entry) => got += &format!(" {}", role(entry)),
                TranscriptItem::Finding(_) => got += &format!(" {}", show_item(&item)),
            }
        }
        got += "\n";
    }
    assert_eq!(got, expected);
}

#[test]
fn aider_histories_have_their_sizes() {
    let Some(own) = counts("large/aider-own-full.md") else { return };
    // One more than there are chat starts: the file begins in the middle of a chat.
    assert_eq!((own.sessions, own.findings().len()), (1_134, 0));
    assert_eq!(counts("aider/aider-own-slice1.md").unwrap().sessions, 56);
    assert_eq!(counts("aider/aider-own-slice2.md").unwrap().sessions, 85);
    assert_eq!(counts("aider/zen-mcp-server-small.md").unwrap().sessions, 4);
}

#[test]
fn specstory_files_have_their_sizes() {
    let prompts = |file: &str| Some(counts(&format!("specstory/{file}"))?.of(EntryKind::Prompt));
    if samples().is_none() {
        return;
    }
    assert_eq!(prompts("evaluate-cursor-ide.md"), Some(3));
    // Commands, text of the client and an accepted plan.
    assert_eq!(prompts("plan-add-timestamps.md"), Some(0));
    assert_eq!(prompts("codex-start-with-docs-git.md"), Some(2));
    assert_eq!(prompts("gemini-read-docs-git-provenance.md"), Some(4));
    assert_eq!(prompts("cursor-ide-fix-unknown-field.md"), Some(1));
    let shells = counts("specstory/evaluate-cursor-ide.md").unwrap();
    assert!(shells.of(EntryKind::ToolCall) == shells.of(EntryKind::ToolResult));
}

#[test]
fn skipped_entries_say_why() {
    let Some(tau) = counts("openai-messages/tau-bench-airline-12-as-messages.jsonl") else {
        return;
    };
    let context = tau.entries.iter().filter(|entry| entry.skip == Some(Skip::Injected)).count();
    assert_eq!(context, 12);
}

#[test]
fn documents_and_code_are_no_transcripts() {
    let Some(folder) = samples() else { return };
    let shared = folder.parent().unwrap();
    for path in files(shared) {
        let shown = path.to_string_lossy().into_owned();
        if shown.contains("/transcripts/") && !shown.ends_with("README.md") {
            continue;
        }
        let is_text =
            [".md", ".rs", ".toml", ".py", ".sh", ".yml"].iter().any(|end| shown.ends_with(end));
        if is_text {
            let got = detect(&fs::read(&path).unwrap(), Some(&name(&path)));
            assert!(got.is_err(), "{shown}: {got:?}");
        }
    }
}
