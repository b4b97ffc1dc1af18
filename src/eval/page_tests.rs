//! Tests of the page.

use super::super::case::Tolerances;
use super::super::compare::compare;
use super::super::testing::{
    HOSTILE, case, decision, earlier, evidence, problem, report, sample, shown,
};
use super::*;
use crate::domain::Speaker;
use crate::privacy::Gate;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Maximum size of a page of 500 cases.
const PAGE_BYTES_MAX: usize = 20_000_000;

fn page(report: &Report, shown: &[Vec<ShownEntries>], comparison: Option<&Comparison>) -> String {
    super::page(report, shown, comparison).unwrap()
}

fn whole() -> String {
    let changes = compare(&earlier(), &sample(), &|_: &str| Tolerances::default());
    page(&sample(), &[shown()], Some(&changes))
}

/// Fails if a closing tag of the page does not match an open one.
#[track_caller]
fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("</style>").map_or(page, |(_, rest)| rest);
    let body = body.split("<script>").next().unwrap_or_default();
    for piece in body.split('<').skip(1) {
        let Some((tag, _)) = piece.split_once('>') else { panic!("a < stands alone: {piece}") };
        let name = tag.split(' ').next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some("head") => {}
            Some(name) => assert_eq!(open.pop(), Some(name), "{piece}"),
            None if ["input", "meta"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert!(open.iter().all(|it| *it == "body"), "{open:?}");
    let after = |name: &str| -> Vec<String> {
        let all = body.split(name).skip(1);
        all.map(|it| it.split('"').next().unwrap_or_default().to_owned()).collect()
    };
    let (ids, links) = (after(" id=\""), after("href=\"#"));
    let known: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(known.len(), ids.len(), "a name is given twice");
    let lost: Vec<&String> = links.iter().filter(|it| !known.contains(it)).collect();
    assert!(lost.is_empty(), "links that lead nowhere: {lost:?}");
}

#[test]
fn a_page_is_well_formed_and_every_link_leads_somewhere() {
    check(&whole());
    check(&page(&report("none", vec![]), &[], None));
    let mut both = sample();
    both.variants.extend(earlier().variants);
    check(&page(&both, &[shown()], None));
}

#[test]
fn hostile_text_is_text() {
    let page = whole();
    assert!(page.contains(
        "&lt;&#x2f;script&gt;&lt;img src=x onerror=&quot;alert(&#x27;1&#x27;)&quot;&gt;"
    ));
    assert!(!page.contains("<img") && page.matches("<script").count() == 1);
    assert!(!page.contains(|it: char| it.is_control() && it != '\n'));
    assert!(!HOSTILE.is_empty() && !page.contains(" style=") && !page.contains("http://"));
}

#[test]
fn the_policy_names_the_style_and_the_script_that_the_page_has() {
    use sha2::Digest as _;
    /// The digest as the policy encodes it.
    fn named(text: &str) -> String {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut bytes = sha2::Sha256::digest(text).to_vec();
        bytes.push(0);
        let letters = bytes.chunks(3).flat_map(|three| {
            let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|by| char::from(LETTERS[bits >> by & 63]))
        });
        let letters: String = letters.collect();
        format!("'sha256-{}='", &letters[..43])
    }
    for text in [STYLE, SCRIPT] {
        assert!(TEMPLATE.contains(&named(text)), "the policy must name {}", named(text));
    }
    assert!(whole().contains(&format!("<style>{STYLE}</style>")));
}

#[test]
fn evidence_is_marked_in_place_and_linked_both_ways() {
    let page = whole();
    let marked = "<mark>We take </mark><mark class=\"more\">PostgreSQL</mark>";
    assert!(page.contains(marked), "overlapping places are told apart");
    assert!(page.contains("href=\"#v0c0r0\" aria-label=\"record 1: chosen\">1</a>"));
    assert!(page.contains("href=\"#v0c0m0\">entry 1 (person, exact)</a>: chosen"));
    assert!(page.contains("answers nothing") && page.contains(">d1</a>"));
}

#[test]
fn cases_that_did_not_pass_come_first() {
    let page = whole();
    let places: Vec<usize> = ["injected", "long-output", "unreadable", "database"]
        .map(|name| page.find(&format!("data-name=\"{name}")).unwrap())
        .to_vec();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn five_hundred_cases_with_long_outputs_stay_bounded_and_keep_their_evidence() {
    let gate = Gate::new(&[]);
    let output = gate.redact(&"error[E0308]: mismatched <types> & \"more\"\n".repeat(500));
    let entries: Vec<ShownEntry> = (0..60)
        .map(|ordinal| ShownEntry {
            ordinal,
            speaker: Speaker::Tool,
            label: "ToolResult Bash".to_owned(),
            text: output.clone(),
        })
        .collect();
    let mut records = vec![decision(&"a long choice ".repeat(60), &"why ".repeat(400)); 30];
    for (at, record) in (0..).zip(&mut records) {
        record.evidence = vec![evidence("chosen", at * 2, 9_000, 9_040)];
    }
    let case = |at: usize| {
        let mut case = case(&format!("case-{at:03}"), vec![], vec![], records.clone());
        case.problems = vec![problem("stale", &"+ one line\n".repeat(900)); 2];
        case
    };
    let report = report("built-in", (0..500).map(case).collect());
    let long = page(&report, &[vec![entries.clone(); 500]], None);
    assert!(long.len() < PAGE_BYTES_MAX, "{}", long.len());
    assert!(long.contains(" bytes left out") && long.contains(" entries left out"));
    let mut few = shown();
    few[0] = entries;
    check(&page(&sample(), &[few], None));
}

fn entry(text: &str) -> ShownEntry {
    let text = Gate::new(&[]).redact(text);
    ShownEntry { ordinal: 0, speaker: Speaker::Tool, label: "ToolResult".to_owned(), text }
}

proptest! {
    #[test]
    fn marks_change_no_text(
        text in "[a<&>\"'é日 \n]{0,60}",
        places in prop::collection::vec((0..80u32, 0..80u32), 0..6),
    ) {
        let mut it = case("c", vec![], vec![], vec![decision("a", "b"); 2]);
        for (at, (from, to)) in places.iter().enumerate() {
            it.records[at % 2].evidence.push(evidence("chosen", 0, *from, *to));
        }
        let entries = [entry(&text)];
        let (views, _) = entry_views(&entries, &marks(&it, &entries, 9), AT_LENGTH);
        let seen: String = views[0].parts.iter().map(|it| it.text).collect();
        prop_assert_eq!(seen, entries[0].text.as_str());
    }

    #[test]
    fn any_text_makes_a_well_formed_page(text in any::<String>()) {
        let mut it = sample();
        let first = &mut it.variants[0].cases[0];
        (first.name, first.about) = (text.clone(), text.clone());
        first.records[0].claim = serde_json::json!({ text.clone(): [text.clone()], "chosen": text });
        check(&page(&it, &[shown()], None));
    }

    #[test]
    fn long_entries_lose_only_what_is_left_out_and_never_evidence(
        from in 0..20_000u32, bytes in 1..9_000u32,
    ) {
        let mut it = case("c", vec![], vec![], vec![decision("a", "b")]);
        it.records[0].evidence.push(evidence("chosen", 0, from, from + bytes));
        let entries = [entry(&"Grüße, wörter und mehr. ".repeat(800))];
        let marks = marks(&it, &entries, 9);
        for detail in [AT_LENGTH, IN_SHORT] {
            let (views, hidden) = entry_views(&entries, &marks, detail);
            prop_assert!(!marks[0].is_shown || views.len() == 1);
            let Some(view) = views.first() else { prop_assert_eq!(hidden, 1); continue };
            let left = view.gap + view.parts.iter().map(|it| it.gap).sum::<usize>();
            let shown: usize = view.parts.iter().map(|it| it.text.len()).sum();
            prop_assert_eq!(left + shown, entries[0].text.as_str().len());
            prop_assert!(left > 0 && shown < 6_000, "{left} {shown}");
            prop_assert_eq!(view.parts.iter().any(|it| it.marks > 0), marks[0].is_shown);
            prop_assert_eq!(view.parts.iter().any(|it| !it.ends.is_empty()), marks[0].is_shown);
        }
    }
}
