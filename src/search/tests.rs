//! Tests of the order of hits.

use super::*;
use proptest::prelude::*;

/// Indices of matching texts, best first.
fn ranked(query: &str, texts: &[&str]) -> Vec<usize> {
    let query = Query::of(query);
    let mut ranking = Ranking::new(&query);
    texts.iter().for_each(|text| ranking.add(&[text]));
    ranking.ranked(&Frequencies::default()).into_iter().map(|(at, _)| at).collect()
}

#[test]
fn rare_words_and_words_as_they_were_asked_for_come_first() {
    let texts = ["the queue of mail", "queues and a lease", "mail queue queue", "paint"];
    assert_eq!(ranked("lease queue", &texts).first(), Some(&1));
    assert_eq!(ranked("confirm", &["the configuration", "confirmed it", "confirms"]), [1, 2]);
    assert!(ranked("nothing", &texts).is_empty());
}

#[test]
fn a_code_name_as_it_is_written_comes_first() {
    let drains = ["the drain in the kitchen", "the flag `--drain` empties the pipe"];
    assert_eq!(ranked("--drain", &drains), [1, 0]);
    assert_eq!(ranked("claimJob", &["the column claim_job", "calls claimJob"]), [1, 0]);
    assert_eq!(ranked("claim_job", &["calls claimJob", "the column claim_job"]), [1, 0]);
}

#[test]
fn the_subject_weighs_more_than_the_words_it_rests_on() {
    let query = Query::of("lease");
    let mut ranking = Ranking::new(&query);
    ranking.add(&["queue", "", "the lease"]);
    ranking.add(&["lease", "", "the queue"]);
    let found = ranking.ranked(&Frequencies::default());
    assert_eq!(found.first().map(|(at, _)| *at), Some(1));
}

#[test]
fn equal_texts_keep_their_order_and_no_words_find_all() {
    assert_eq!(ranked("mail", &["mail one", "mail two"]), [0, 1]);
    assert_eq!(ranked("the", &["mail one", "mail two"]), [0, 1]);
}

proptest! {
    #[test]
    fn every_text_is_found_by_its_words(texts in proptest::collection::vec("[a-zA-Zäß決 _.]{0,30}", 1..6)) {
        for (at, text) in texts.iter().enumerate() {
            let all: Vec<&str> = texts.iter().map(String::as_str).collect();
            if !Query::of(text).is_empty() {
                prop_assert!(ranked(text, &all).contains(&at), "{text:?}");
            }
        }
    }
}

#[test]
fn a_word_of_the_same_meaning_is_found_and_counts_less_than_the_word() {
    let query = Query::of("ship to production");
    let mut ranking = Ranking::new(&query);
    let texts = ["Deploys end at four", "We ship at four", "The weather is fine"];
    texts.iter().for_each(|text| ranking.add(&[text]));
    let found = ranking.ranked(&Frequencies::default()).into_iter().map(|(at, _)| at);
    assert_eq!(found.collect::<Vec<_>>(), [1, 0]);
    // However rare it is among texts that have the word.
    let query = Query::of("ship");
    let mut ranking = Ranking::new(&query);
    let mut texts = vec!["We ship at four, as long as there is somebody to watch it"; 12];
    texts.insert(0, "Deploys end at four");
    texts.iter().for_each(|text| ranking.add(&[text]));
    let last = ranking.ranked(&Frequencies::default()).last().map(|(at, _)| *at);
    assert_eq!(last, Some(0));
    let query = Query::of("ship to production");
    let (own, others) = (query.keys(), query.synonym_keys());
    assert!(!others.is_empty() && others.iter().all(|key| !own.contains(key)));
    assert!(Query::of("zyx").synonym_keys().is_empty());
}

#[test]
fn groups_of_synonyms_are_sorted_and_have_words_once_each() {
    let lines: Vec<&str> = include_str!("synonyms.txt").lines().collect();
    assert!(lines.is_sorted_by(|one, other| one < other));
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let each: std::collections::HashSet<&&str> = words.iter().collect();
        assert!(words.len() > 1 && each.len() == words.len(), "{line}");
        assert!(line.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == ' '));
    }
}
