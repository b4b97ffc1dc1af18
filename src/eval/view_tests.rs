//! Tests of the page and of the XML.

use super::super::case::Tolerances;
use super::super::compare::compare;
use super::super::testing::{HOSTILE, earlier, problem, report, sample};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn page(report: &Report, comparison: Option<&Comparison>) -> String {
    super::page(report, comparison).unwrap()
}

fn whole() -> String {
    let changes = compare(&earlier(), &sample(), &|_: &str| Tolerances::default());
    page(&sample(), Some(&changes))
}

/// Fails if a closing tag of the page does not match an open one.
#[track_caller]
fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("</style>").map_or(page, |(_, rest)| rest);
    let body = body.split("</body>").next().unwrap_or_default();
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
    check(&page(&report("none", vec![]), None));
    let mut both = sample();
    both.variants.extend(earlier().variants);
    check(&page(&both, None));
}

#[test]
fn hostile_text_is_text() {
    let page = whole();
    assert!(page.contains(
        "&lt;&#x2f;script&gt;&lt;img src=x onerror=&quot;alert(&#x27;1&#x27;)&quot;&gt;"
    ));
    assert!(!page.contains("<img") && !page.contains("<script"));
    assert!(!page.contains(|it: char| it.is_control() && it != '\n'));
    assert!(!HOSTILE.is_empty() && !page.contains(" style=") && !page.contains("http://"));
}

#[test]
fn the_policy_names_the_style_that_the_page_has() {
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
    assert!(TEMPLATE.contains(&named(STYLE)), "the policy must name {}", named(STYLE));
    assert!(whole().contains(&format!("<style>{STYLE}</style>")));
}

#[test]
fn records_are_shown_with_their_evidence_and_with_what_was_lost_and_gained() {
    let page = whole();
    assert!(page.contains("chosen: entry 1 (person, exact) “We take PostgreSQL”"));
    assert!(page.contains("✗ missed") && page.contains("✗ record 1"));
    assert!(
        page.contains("− lost") && page.contains("<dd dir=\"auto\">The disk failed once.</dd>")
    );
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
fn a_long_text_is_cut() {
    let mut long = sample();
    long.variants[0].cases[0].problems = vec![problem("stale", &"é".repeat(1_000_000))];
    assert!(page(&long, None).len() < page(&sample(), None).len() + 2 * TEXT_BYTES_MAX);
}

proptest! {
    #[test]
    fn any_text_makes_a_well_formed_page(text in any::<String>()) {
        let mut it = sample();
        let first = &mut it.variants[0].cases[0];
        (first.name, first.about) = (text.clone(), text.clone());
        first.records[0].claim = serde_json::json!({ text.clone(): [text.clone()], "chosen": text });
        check(&page(&it, None));
    }
}

mod xml {
    use super::*;

    fn against(before: &Report, after: &Report) -> String {
        junit(after, Some(&compare(before, after, &|_: &str| Tolerances::default()))).unwrap()
    }

    /// Checks that elements are closed in order.
    #[track_caller]
    fn check(xml: &str) {
        let mut open: Vec<&str> = Vec::new();
        let body = xml.split_once("?>").unwrap().1;
        for piece in body.split('<').skip(1) {
            let (tag, _) = piece.split_once('>').expect("a < that opens nothing");
            assert!(tag.matches('"').count() % 2 == 0, "{piece}");
            let name = tag.split([' ', '\n']).next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!xml.contains(|it: char| "\u{0}\u{1b}\u{8}".contains(it)));
    }

    #[test]
    fn failed_and_stale_cases_are_failures_and_broken_ones_errors() {
        let xml = junit(&sample(), None).unwrap();
        check(&xml);
        insta::assert_snapshot!("junit", xml);
    }

    #[test]
    fn a_regression_is_a_failure_even_if_the_case_passed() {
        let mut after = sample();
        after.variants[0].cases.retain(|it| it.name == "database-reversal");
        after.variants[0].cases[0].sums.tally.core.hits = 0;
        let xml = against(&earlier(), &after);
        check(&xml);
        let worse = "worse than the baseline: core_recall 2/2 → 0/2";
        assert!(xml.contains(worse) && xml.contains("type=\"gone\""), "{xml}");
        assert!(xml.contains(" tests=\"5\" skipped=\"0\" failures=\"5\" errors=\"0\""), "{xml}");
        let apart = against(&report("one", vec![]), &Report { variants: vec![], ..sample() });
        assert!(apart.contains("<testsuite name=\"baseline\" tests=\"1\""), "{apart}");
        check(&apart);
    }

    proptest! {
        #[test]
        fn any_text_is_well_formed(text in any::<String>()) {
            let mut it = sample();
            it.variants[0].name = text.clone();
            let case = &mut it.variants[0].cases[1];
            (case.name, case.problems[0].detail) = (HOSTILE.to_owned(), text);
            check(&junit(&it, None).unwrap());
            check(&against(&earlier(), &it));
        }
    }
}
