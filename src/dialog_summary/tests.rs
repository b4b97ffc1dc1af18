//! Tests of turns and blocks.

use super::*;
use crate::domain::{
    Attempt, Branch, Claim, Decision, Digest, Discussion, Entry, EntryKind, Evidence, Match,
    PersonRequest, Provenance, Record, RecordState, RunId, SessionId, Skip, SliceId, Speaker,
    Timestamp, Tokens, Tool, testing,
};
use crate::privacy::{Gate, Pii, Redacted};

thread_local! {
    /// Number of measured turns.
    pub(super) static MEASURED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

pub(super) fn gate() -> Gate {
    Gate::new(&Pii::ALL)
}

/// An entry: `kind: words`, or `kind NAME: words` for a tool.
pub(super) fn entry(ordinal: u32, line: &str) -> Entry {
    let (head, text) = line.split_once(": ").unwrap_or((line, ""));
    let (kind, name) = head.split_once(' ').map_or((head, None), |(kind, name)| (kind, Some(name)));
    let kind = EntryKind::of_name(kind).unwrap();
    let speaker = match kind {
        EntryKind::Text | EntryKind::ToolCall => Speaker::Assistant,
        EntryKind::ToolResult => Speaker::Tool,
        EntryKind::Summary | EntryKind::Injected | EntryKind::Notice => Speaker::Client,
        EntryKind::Prompt
        | EntryKind::Steering
        | EntryKind::Answer
        | EntryKind::Rejection
        | EntryKind::Command => Speaker::Person,
    };
    Entry {
        tool: name.map(|name| Tool { name: gate().redact(name), call_id: None }),
        at: Some(Timestamp(i64::from(ordinal))),
        ..testing::said(ordinal, (speaker, kind), gate().redact(text))
    }
}

/// The dialog of a script with one entry per line.
fn dialog(script: &str, rules: DialogRules<'_>) -> DialogSummary {
    let mut dialog = DialogSummary::default();
    for (ordinal, line) in (0..).zip(script.lines()) {
        dialog.push(&entry(ordinal, line), rules);
    }
    dialog
}

/// Checks the line of each turn of a script.
#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let gate = gate();
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let block = dialog(script, rules).block(&[], rules);
    let lines: Vec<&str> = block.text.as_str().lines().skip(1).map(str::trim_start).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_turn_is_what_a_person_says_and_all_that_is_done_about_it() {
    check(
        "prompt: list the open jobs\ntool_call Bash: annalist jobs\ntool_result Bash: 3 jobs\n\
         text: There are three.\nprompt: cancel the first\nsteering: no, the second\n\
         tool_call calendar.cancel: 2\ntext: Done.",
        &[
            "Turn 1: User requested: list the open jobs, I called Bash.",
            "Turn 2: User requested: cancel the first, I called cancel.",
        ],
    );
}

#[test]
fn words_before_an_answer_are_one_turn_and_the_first_that_say_something_count() {
    check(
        "prompt: selam\nprompt: ???\nprompt: yarınki toplantıyı iptal et\nprompt: lütfen\ntext: Peki.",
        &["Turn 1: User requested: yarınki toplantıyı iptal et, I responded with chat."],
    );
    check(
        "command: <command-name>/model</command-name>\nprompt: hi\nprompt: fix it\ntext: Ok.",
        &["Turn 1: User requested: fix it, I responded with chat."],
    );
}

#[test]
fn small_talk_is_told_as_such_and_signs_as_unclear() {
    check(
        "prompt: Günaydın!\ntext: Günaydın!",
        &["Turn 1: User casual chat, I responded with chat."],
    );
    check(
        "prompt: ???\ntext: Sorry?",
        &["Turn 1: User unclear request, I asked for clarification. Pending: need: Sorry?"],
    );
}

#[test]
fn tools_are_named_once_and_counted_beyond_the_third() {
    check(
        "prompt: go\ntool_call a.b: 1\ntool_call b: 2\ntool_call c.d.: 3\ntool_call e: 4\ntool_call f: 5\ntool_call e: 6",
        &["Turn 1: User requested: go, I called b, d, e +1."],
    );
}

#[test]
fn what_waits_for_the_person_is_pending_until_they_speak() {
    let asks =
        "prompt: toplantı ayarla\ntext: Saat kaçta olsun ve kimler katılacak acaba söyler misin?";
    let asked = "Turn 1: User requested: toplantı ayarla, I asked for clarification. \
        Pending: need: Saat kaçta olsun ve kimler…";
    check(asks, &[asked]);
    check(
        &format!(
            "{asks}\nanswer: dokuzda\ntool_call calendar.create_event: {{}}\ntext: Oluşturayım mı?"
        ),
        &[
            "Turn 1: User requested: toplantı ayarla, I called create_event. Pending: waiting for confirmation",
        ],
    );
    check(
        &format!("{asks}\nanswer: dokuzda\ntext: Tamam."),
        &["Turn 1: User requested: toplantı ayarla, I responded with chat."],
    );
}

#[test]
fn tools_that_ask_wait_for_an_answer() {
    let called = "Turn 1: User requested: go, I called AskUserQuestion.";
    let pending = format!("{called} Pending: need: Which database?");
    check("prompt: go\ntool_call AskUserQuestion: Which database? - A - B", &[&pending]);
    check(
        r#"prompt: go
tool_call AskUserQuestion: {"questions": [{"question": "Which database?"}]}"#,
        &[&pending],
    );
    check(
        "prompt: go\ntool_call AskUserQuestion: {}",
        &[&format!("{called} Pending: need: an answer")],
    );
    check("prompt: go\ntool_call AskUserQuestion: Which database?\nanswer: the second", &[called]);
    check(
        "prompt: go\ntool_call AskUserQuestion: Which?\ntool_result AskUserQuestion: A",
        &[called],
    );
    check(
        "prompt: go\ntool_call ExitPlanMode: 1. dig",
        &["Turn 1: User requested: go, I called ExitPlanMode. Pending: waiting for confirmation"],
    );
}

#[test]
fn what_nobody_answered_yet_is_told_as_such() {
    check(
        "prompt: list the jobs",
        &["Turn 1: User requested: list the jobs, I have not answered yet."],
    );
    check(
        "prompt: a1\ntext: b\ncommand: <command-name>/clear</command-name>",
        &["Turn 1: User requested: a1, I responded with chat."],
    );
    check("text: Hi, how can I help?\ninjected: You are kind.", &[]);
}

#[test]
fn private_and_personal_words_stay_out_of_every_field() {
    check(
        "prompt: email gönder: ada@example.com <private>boss</private>\n\
         text: Kime? Cevap: 555-123-4567 mi?",
        &["Turn 1: User requested: email gönder: <EMAIL>, I asked for clarification. \
            Pending: need: Cevap: <PHONE> mi?"],
    );
    // If it were cut first, the address would not be recognised.
    check(
        "prompt: hi\ntext: Shall it go to the address john.doe@example.com or elsewhere?",
        &["Turn 1: User casual chat, I asked for clarification. \
            Pending: need: Shall it go to the address…"],
    );
}

#[test]
fn other_branches_and_skipped_entries_are_no_part_of_it() {
    let gate = gate();
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let mut dialog = DialogSummary::default();
    for (ordinal, branch, skip) in [
        (0, Branch::Abandoned, None),
        (1, Branch::Sidechain, None),
        (2, Branch::Active, Some(Skip::Copied)),
    ] {
        dialog.push(&Entry { branch, skip, ..entry(ordinal, "prompt: dig") }, rules);
    }
    assert_eq!(dialog.block(&[], rules), Block::default());
    dialog.push(&entry(3, "prompt: plant"), rules);
    assert_eq!(dialog.turns(rules)[0].timestamp, Some(Timestamp(3)));
}

fn record(ordinal: u32, claim: Claim, state: RecordState) -> Record {
    let digest = Digest::of(&["test"]);
    let evidence = Evidence {
        field: "chosen".to_owned(),
        ordinal,
        line: 1,
        bytes: 0..1,
        speaker: Speaker::Person,
        name: None,
        found: Match::Exact,
        words: Redacted::default(),
    };
    Record {
        id: Record::id_of(RunId(digest), &claim),
        claim,
        provenance: Provenance {
            namespace: "n".to_owned(),
            session: SessionId(digest),
            slice: SliceId(digest),
            run: RunId(digest),
            entries: (0, 9),
            at: None,
        },
        evidence: vec![evidence],
        score: 1.0,
        state,
        reason: None,
    }
}

#[test]
fn records_tell_what_was_asked_decided_and_tried() {
    let gate = gate();
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let script = "prompt: so what now, tell me\ntool_call Bash: x\ntext: Redis loses jobs.\n\
                  prompt: ...\ntext: Fine.";
    let dialog = dialog(script, rules);
    let decision = |chosen: &str| {
        Claim::Decision(Decision {
            options: vec![],
            chosen: chosen.to_owned(),
            rationale: String::new(),
        })
    };
    let tried = Claim::Attempt(Attempt {
        action: "moved jobs to Redis".to_owned(),
        result: "some were lost".to_owned(),
        succeeded: false,
    });
    let wanted = Claim::Request(PersonRequest {
        intent: "keep jobs".to_owned(),
        target: None,
        summary: "keep the jobs of ada@example.com".to_owned(),
    });
    let topic = Claim::Discussion(Discussion { topic: "queues".to_owned(), points: vec![] });
    let records = [
        record(0, wanted, RecordState::Staged),
        record(2, tried, RecordState::Staged),
        record(1, decision("Postgres"), RecordState::Staged),
        record(1, decision("MySQL"), RecordState::Quarantined),
        record(7, decision("SQLite"), RecordState::Staged),
        record(4, topic, RecordState::Staged),
    ];
    let records: Vec<&Record> = records.iter().collect();
    let block = dialog.block(&records, rules);
    assert_eq!(
        block.text.as_str(),
        "DIALOG_SUMMARY (last few turns):\n  \
         Turn 1: User requested: keep the jobs of <EMAIL>, I called Bash; \
         tried: moved jobs to Redis (did not fully work); decision: Postgres.\n  \
         Turn 2: User discussed: queues, I responded with chat."
    );
    assert_eq!(dialog.block(&records, rules), block, "told twice is told once");
}

#[test]
fn a_request_is_of_the_turn_in_which_a_person_first_made_it() {
    let gate = gate();
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let script = "prompt: import dies\ntext: Shall I load all?\nprompt: Yes, load all\ntext: Fine.";
    let claim = Claim::Request(PersonRequest {
        intent: "fix the import".to_owned(),
        target: None,
        summary: "fix the import; load all".to_owned(),
    });
    for (spoken, turns) in [
        (
            [(0, Speaker::Person), (2, Speaker::Person)],
            ["fix the import; load all", "Yes, load all"],
        ),
        (
            [(1, Speaker::Assistant), (2, Speaker::Person)],
            ["import dies", "fix the import; load all"],
        ),
    ] {
        let mut made = record(0, claim.clone(), RecordState::Staged);
        let evidence = made.evidence[0].clone();
        let of = |(ordinal, speaker)| Evidence { ordinal, speaker, ..evidence.clone() };
        made.evidence = spoken.map(of).to_vec();
        let block = dialog(script, rules).block(&[&made], rules);
        let said = turns.map(|words| format!("requested: {words}"));
        assert_eq!(block.turns.iter().map(|it| it.user_intent.as_str()).collect::<Vec<_>>(), said);
    }
}

/// Checks the block of one given turn within `tokens_max`.
#[track_caller]
fn check_shortened(tokens_max: Tokens, expected: &str) {
    let gate = gate();
    let rules = DialogRules { gate: &gate, limits: DialogLimits { tokens_max, turns_max: 5 } };
    let told = |text: &str| gate.redact(text);
    let turn = CompactSummary {
        user_intent: told("asked about the calendar of next week"),
        action_taken: told("called list_events and read them out"),
        pending_items: vec![told("waiting for confirmation"), told("need: which of the two days?")],
        ..CompactSummary::default()
    };
    let mut dialog = DialogSummary::default();
    dialog.add(turn, rules);
    let text = dialog.block(&[], rules).text;
    let lines: Vec<&str> = text.as_str().lines().skip(1).map(str::trim_start).collect();
    assert_eq!(lines.join("|"), expected);
}

#[test]
fn a_turn_too_long_alone_loses_what_is_pending_then_what_was_done_then_what_was_wanted() {
    let head = "Turn 1: User asked about the calendar of next week, I called list_events and read them out";
    check_shortened(
        60,
        &format!("{head}. Pending: waiting for confirmation, need: which of the two days?"),
    );
    check_shortened(45, &format!("{head}. Pending: waiting for confirmation, need: which of…"));
    check_shortened(38, &format!("{head}. Pending: waiting for…"));
    check_shortened(33, &format!("{head}."));
    check_shortened(
        28,
        "Turn 1: User asked about the calendar of next week, I called list_events….",
    );
    check_shortened(20, "Turn 1: User asked about the calendar…, I ….");
    check_shortened(14, "Turn 1: User a…, I ….");
    check_shortened(13, "");
    check_shortened(0, "");
}

#[test]
fn documents_are_read_turn_by_turn() {
    let gate = gate();
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let text = r#"{"turns": [{"user_intent": "mail a@b.org", "action_taken": "sent\nit"}, 3,
        {"user_intent": "x", "action_taken": "y", "mood": "z"},
        {"user_intent": "", "action_taken": "", "pending_items": ["call 555-123-4567", ""],
         "timestamp": "2026-11-21T09:00:00Z"}], "more": 1}"#;
    let (turns, findings) = document(text, rules.gate).unwrap();
    let rules_of: Vec<(&str, u32)> =
        findings.iter().map(|it| (it.rule.as_ref(), it.line)).collect();
    assert_eq!(rules_of, [("unknown-field", 0), ("bad-turn", 2), ("bad-turn", 3)]);
    let mut dialog = DialogSummary::default();
    for turn in turns {
        dialog.add(turn, rules);
    }
    assert_eq!(
        dialog.block(&[], rules).text.as_str(),
        "DIALOG_SUMMARY (last few turns):\n  Turn 1: User mail <EMAIL>, I sent it.\n  \
         Turn 2: User unclear request, I have not answered yet. Pending: call <PHONE>"
    );
    for other in ["", "[]", "{}", r#"{"turns": 1}"#, "turns", r#"{"turns": ["#] {
        assert_eq!(document(other, rules.gate), None, "{other}");
    }
}

/// Number of turns measured while reading a dialog of `turns` turns.
fn measured(turns: usize, limits: DialogLimits) -> usize {
    let gate = gate();
    let script = "prompt: list the jobs\ntext: There are three.\n".repeat(turns);
    MEASURED.set(0);
    dialog(&script, DialogRules { gate: &gate, limits });
    MEASURED.get()
}

#[test]
fn twice_the_turns_are_at_most_twice_the_work() {
    for limits in [DialogLimits::default(), DialogLimits::NONE] {
        let (once, twice) = (measured(100, limits), measured(200, limits));
        assert!(twice <= 3 * once, "{once} and {twice}");
    }
}
