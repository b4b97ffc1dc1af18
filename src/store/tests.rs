//! Invariants of the store, tested through its public functions.

use super::fixture::*;
use super::journal::{Journaled, Journaling};
use super::*;
use crate::domain::*;
use crate::domain::{ClaimKind, Coverage, CoverageState, Finish, Record, RecordState, Usage};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;

async fn coverage(store: &Store) -> Coverage {
    store.status().await.unwrap().sessions[0].totals.coverage
}

/// Returns everything that can be read, for comparison.
async fn dump(store: &Store, session: &Session) -> String {
    let filter = RecordFilter { states: RecordState::ALL.to_vec(), ..RecordFilter::default() };
    let records = store.records(filter).await.unwrap();
    let runs = store.runs(None, 1_000).await.unwrap();
    let entries = store.entries_of(session.id, 0..1_000).await.unwrap();
    let status = store.status().await.unwrap();
    format!("{records:#?}\n{runs:#?}\n{entries:#?}\n{status:#?}")
}

#[tokio::test]
async fn what_is_staged_is_read_back_as_it_was() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let staging = staging(&session, "r", 0, &["raise the pressure", "lower it"]);
        let staged = stage(&store, staging.clone()).await.unwrap();
        assert_eq!(staged, Staged { staged: 2, quarantined: 0 });
        let records = store.records(RecordFilter::default()).await.unwrap();
        let read: Vec<Record> = records.iter().map(|stored| stored.record.clone()).collect();
        assert_eq!(read, staging.records);
        let entries: Vec<Entry> = staging.entries.iter().map(|it| it.entry.clone()).collect();
        assert_eq!(store.entries_of(session.id, 0..10).await.unwrap(), entries);
        assert_eq!(store.entries_of(session.id, 4..5).await.unwrap(), entries[4..5]);
        let known = store.known_runs(session.id, staging.run.asking).await.unwrap();
        assert_eq!((known[0].run, known[0].state), (staging.run.id, RunState::Done));
        assert_eq!(store.known_runs(session.id, Digest::of(&["x"])).await.unwrap(), []);
        let prefix = read[0].id.to_string()[..9].parse().unwrap();
        let PrefixLookup::One(why) = store.why(prefix).await.unwrap() else { panic!("not found") };
        assert_eq!(why.page.session, session);
        assert_eq!(why.page.run, StoredRun { run: staging.run, current: true });
        assert_eq!(why.entries, [Some(entries[0].clone())]);
    })
    .await;
}

#[tokio::test]
async fn a_run_of_an_unknown_session_is_refused() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let stranger = conversation("stranger");
        let error = stage(&store, staging(&stranger, "r", 0, &["a"])).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::UnknownSession(stranger.id));
    })
    .await;
}

proptest! {
    #![proptest_config(crate::testing::cases(12))]

    #[test]
    fn staging_twice_in_any_order_is_staging_once(
        plan in prop::collection::vec((0u32..4, any::<bool>(), 0usize..3), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(on_each_store(async |kind| {
            let claims = ["one", "two", "three"];
            let (_place, store, session) = kind.begun().await;
            // One run per place: which of two equal runs came last is not tested here.
            let mut stagings: Vec<Staging> = Vec::new();
            for (place, fails, records) in &plan {
                let name = format!("r{place}");
                let made = staging(&session, &name, place * 10, &claims[..*records]);
                let made = if *fails { failed(made) } else { made };
                if stagings.iter().all(|staging| staging.run.id != made.run.id) {
                    stagings.push(made);
                }
            }
            for staging in &stagings {
                stage(&store, staging.clone()).await.unwrap();
            }
            let once = dump(&store, &session).await;
            for staging in stagings.iter().rev() {
                stage(&store, staging.clone()).await.unwrap();
            }
            assert_eq!(dump(&store, &session).await, once);
        }));
    }
}

#[tokio::test]
async fn an_entry_of_many_parts_is_what_its_worst_part_is() {
    on_each_store(async |kind| {
        use CoverageState::{Extracted, Failed, Nothing, Skipped};
        let table = [
            (Nothing, Nothing, Nothing),
            (Nothing, Extracted, Extracted),
            (Extracted, Nothing, Extracted),
            (Extracted, Failed, Failed),
            (Failed, Nothing, Failed),
            (Skipped, Nothing, Nothing),
        ];
        for (first, second, expected) in table {
            // Both in two runs, and twice in one.
            let (_place, store, session) = kind.begun().await;
            let mut one = staging(&session, "a", 0, &[]);
            one.entries = vec![covered(0, first)];
            let mut two = staging(&session, "b", 0, &[]);
            two.entries = vec![covered(0, second)];
            let mut both = staging(&session, "c", 1, &[]);
            both.entries = vec![covered(1, first), covered(1, second)];
            for staging in [one, two, both] {
                stage(&store, staging).await.unwrap();
            }
            let mut twice = Coverage::default();
            twice.add(expected, 2);
            assert_eq!(coverage(&store).await, twice, "{first:?} and {second:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn entries_are_failed_for_the_reason_of_the_part_that_failed() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let mut good = staging(&session, "a", 0, &[]);
        good.entries =
            vec![CoveredEntry { reason: Some("good".to_owned()), ..good.entries.remove(0) }];
        let mut bad = failed(staging(&session, "b", 0, &[]));
        bad.entries =
            vec![CoveredEntry { reason: Some("bad".to_owned()), ..bad.entries.remove(0) }];
        for staging in [bad, good] {
            stage(&store, staging).await.unwrap();
        }
        let reasons = store.status().await.unwrap().sessions.remove(0).totals.reasons;
        assert_eq!(reasons, [((CoverageState::Failed, "bad".to_owned()), 1)].into());
    })
    .await;
}

#[tokio::test]
async fn a_failed_run_that_is_asked_again_is_replaced_and_both_are_paid_for() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let good = staging(&session, "r", 0, &["a"]);
        stage(&store, failed(good.clone())).await.unwrap();
        let status = store.status().await.unwrap();
        assert_eq!(status.failed[0].failure.kind, "too-long");
        assert_eq!(status.sessions[0].totals.coverage.failed, 10);
        let mut again = good.clone();
        again.run.generation = 1;
        stage(&store, again.clone()).await.unwrap();
        stage(&store, again).await.unwrap();
        let status = store.status().await.unwrap();
        assert_eq!((status.failed.len(), status.sessions[0].totals.coverage.nothing), (0, 10));
        assert_eq!((status.spent.calls, status.spent.cost_micros), (2, 14));
        let later = spent(&store, Timestamp(6_001), None, None).await.unwrap();
        assert_eq!(later, Spent::default());
        let mine = spent(&store, Timestamp(0), Some("project"), Some(session.id)).await.unwrap();
        assert_eq!(mine, status.spent);
        assert_eq!(spent(&store, Timestamp(0), Some("other"), None).await.unwrap(), later);
    })
    .await;
}

#[tokio::test]
async fn what_was_extracted_stays_when_a_later_try_fails() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let good = staging(&session, "r", 0, &["a"]);
        stage(&store, good.clone()).await.unwrap();
        let mut bad = failed(good);
        bad.run.generation = 1;
        assert_eq!(stage(&store, bad).await.unwrap().staged, 1);
        assert_eq!(store.records(RecordFilter::default()).await.unwrap().len(), 1);
        assert_eq!(coverage(&store).await.nothing, 10);
        assert_eq!(store.status().await.unwrap().spent.calls, 2);
    })
    .await;
}

#[tokio::test]
async fn what_failed_takes_the_place_of_nothing_though_its_neighbour_reaches_into_it() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        // Slices overlap by some entries.
        let (first, second) =
            (staging(&session, "a", 0, &["one"]), staging(&session, "b", 8, &["two"]));
        for old in [&first, &second] {
            stage(&store, old.clone()).await.unwrap();
        }
        store.end_session(session.id, ended(18, &[&first, &second])).await.unwrap();
        let other = |mut staging: Staging| {
            staging.run.asking = Digest::of(&["other"]);
            staging
        };
        let new = other(staging(&session, "c", 0, &["three"]));
        let bad = failed(other(staging(&session, "d", 8, &[])));
        for new in [&new, &bad] {
            stage(&store, new.clone()).await.unwrap();
        }
        store.end_session(session.id, ended(18, &[&new, &bad])).await.unwrap();
        let heads = async || {
            let records = store.records(RecordFilter::default()).await.unwrap();
            let heads = records.iter().map(|it| it.record.claim.headline().to_owned());
            heads.collect::<Vec<_>>()
        };
        assert_eq!(heads().await, ["three", "two"]);
        let mut good = other(staging(&session, "d", 8, &["four"]));
        good.run.generation = 1;
        stage(&store, good.clone()).await.unwrap();
        store.end_session(session.id, ended(18, &[&new, &good])).await.unwrap();
        assert_eq!(heads().await, ["three", "four"]);
    })
    .await;
}

#[tokio::test]
async fn a_run_staged_anew_has_the_new_records_only() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        stage(&store, staging(&session, "r", 0, &["a", "b"])).await.unwrap();
        let staged = stage(&store, staging(&session, "r", 0, &["b", "c"])).await.unwrap();
        assert_eq!(staged.staged, 2);
        let records = store.records(RecordFilter::default()).await.unwrap();
        let heads: Vec<&str> = records.iter().map(|it| it.record.claim.headline()).collect();
        assert_eq!(heads, ["b", "c"]);
    })
    .await;
}

#[tokio::test]
async fn runs_that_cover_no_more_are_replaced_and_come_back_as_they_were() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let old = staging(&session, "old", 0, &["a", "b"]);
        let mut new = staging(&session, "new", 0, &["a"]);
        new.records[0].state = RecordState::Quarantined;
        new.records[0].reason = Some("no-evidence in action".to_owned());
        stage(&store, old.clone()).await.unwrap();
        store.end_session(session.id, ended(10, &[&old])).await.unwrap();
        assert!(store.status().await.unwrap().sessions[0].is_balanced());
        let before = dump(&store, &session).await;

        stage(&store, new.clone()).await.unwrap();
        store.end_session(session.id, ended(10, &[&new])).await.unwrap();
        let status = store.status().await.unwrap();
        let one = &status.sessions[0];
        assert!(one.is_balanced() && one.totals.staged.is_empty() && one.totals.quarantined == 1);
        assert_eq!(one.runs_done, 1);
        let (olds, news) = store.diff(old.run.id, new.run.id).await.unwrap();
        assert!(olds.iter().all(|it| it.record.state == RecordState::Replaced));
        assert_eq!(news[0].record, new.records[0]);

        store.end_session(session.id, ended(10, &[&old])).await.unwrap();
        assert_eq!(store.status().await.unwrap().sessions[0].runs_done, 1);
        stage(&store, old.clone()).await.unwrap();
        let staged = RecordFilter { states: vec![RecordState::Staged], ..RecordFilter::default() };
        let records = store.records(staged).await.unwrap();
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|it| before.contains(&it.record.id.to_string())));
    })
    .await;
}

#[tokio::test]
async fn every_entry_ends_somewhere_or_the_session_does_not_balance() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let run = staging(&session, "r", 0, &[]);
        stage(&store, run.clone()).await.unwrap();
        skip(&store, &session, 10).await;
        let balanced = async || store.status().await.unwrap().sessions[0].is_balanced();
        assert!(!balanced().await, "it has not ended");
        let reasons = store.status().await.unwrap().sessions.remove(0).totals.reasons;
        assert_eq!(reasons, [((CoverageState::Skipped, "empty".to_owned()), 1)].into());
        store.end_session(session.id, ended(12, &[&run])).await.unwrap();
        assert!(!balanced().await, "entry 11 is nowhere");
        skip(&store, &session, 11).await;
        assert!(balanced().await);
        begin(&store, &session).await.unwrap();
        assert!(!balanced().await, "it is being read again");
    })
    .await;
}

#[tokio::test]
async fn the_first_answer_to_a_question_wins() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        let digest = RequestDigest(Digest::of(&["question"]));
        let reply = |text: &str| Reply {
            calls: vec![],
            content: words(text),
            refusal: None,
            finish: Finish::Stop,
            usage: Usage::default(),
        };
        let entry = |text: &str| JournalEntry {
            spare_bill: None,
            digest,
            run: RunId(digest.0),
            session: None,
            model: "small".to_owned(),
            rung: OutputMode::Text,
            at: Timestamp(1),
            reply: reply(text),
            bill: None,
        };
        assert_eq!(store.journaled(digest).await.unwrap(), None);
        let kept = Journaled { run: RunId(digest.0), reply: reply("one"), is_billed: false };
        assert_eq!(store.journal(entry("one")).await.unwrap(), Journaling::Kept);
        assert_eq!(store.journal(entry("two")).await.unwrap(), Journaling::Earlier(kept.clone()));
        assert_eq!(store.journaled(digest).await.unwrap(), Some(kept));
    })
    .await;
}

#[tokio::test]
async fn what_an_endpoint_can_do_is_remembered_last() {
    on_each_store(async |kind| {
        let (_place, store, _) = kind.begun().await;
        assert_eq!(store.capability("http://a", "m").await.unwrap(), None);
        for rung in [OutputMode::ForcedTool, OutputMode::JsonObject] {
            store.learn("http://a", "m", rung, Timestamp(1)).await.unwrap();
        }
        assert_eq!(store.capability("http://a", "m").await.unwrap(), Some(OutputMode::JsonObject));
        assert_eq!(store.capability("http://a", "n").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_filter_leaves_out_what_it_names_not() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let other = Session { namespace: "mine".to_owned(), ..conversation("two") };
        begin(&store, &other).await.unwrap();
        stage(&store, staging(&session, "late", 10, &["c"])).await.unwrap();
        stage(&store, staging(&session, "early", 0, &["a", "b"])).await.unwrap();
        stage(&store, staging(&other, "other", 0, &["d"])).await.unwrap();
        let heads = async |filter: RecordFilter| {
            let records = store.records(filter).await.unwrap();
            let mut heads: Vec<String> =
                records.iter().map(|it| it.record.claim.headline().to_owned()).collect();
            heads.sort();
            heads.concat()
        };
        let all = RecordFilter::default;
        assert_eq!(heads(all()).await, "abcd");
        assert_eq!(heads(RecordFilter { namespace: Some("mine".to_owned()), ..all() }).await, "d");
        assert_eq!(heads(RecordFilter { since: Some(Timestamp(2_010)), ..all() }).await, "c");
        assert_eq!(heads(RecordFilter { kind: Some(ClaimKind::Decision), ..all() }).await, "");
        let of_session = RecordFilter { session: Some(session.id.0.into()), ..all() };
        assert_eq!(heads(RecordFilter { limit: Some(2), ..of_session.clone() }).await, "ab");
        let quarantined = RecordFilter { states: vec![RecordState::Quarantined], ..all() };
        assert_eq!(heads(quarantined).await, "");
        let first = store.fold_records(of_session, 0, |seen, _| {
            *seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!(first.await.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_prefix_of_many_ids_lists_them() {
    on_each_store(async |kind| {
        let (_place, store, session) = kind.begun().await;
        let names: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        stage(&store, staging(&session, "r", 0, &names)).await.unwrap();
        let ids: Vec<String> = staging(&session, "r", 0, &names)
            .records
            .iter()
            .map(|record| record.id.to_string())
            .collect();
        // Of 40 ids, some two share one of 16 first digits.
        let shared = (0..16).map(|n| format!("{n:x}"));
        let count = |digit: &str| ids.iter().filter(|id| id.starts_with(digit)).count();
        let digit = shared.max_by_key(|digit| count(digit)).unwrap();
        let found = store.record(digit.parse().unwrap()).await.unwrap();
        let PrefixLookup::Many(many) = found else { panic!("not many") };
        assert_eq!(many.len(), count(&digit));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_file_write_beside_one_another() {
    on_each_store(async |kind| {
        let (place, one, session) = kind.begun().await;
        let two = Store::open(&place.url(), OpenMode::Existing).unwrap();
        let write = |store: Store, name: &'static str| {
            let session = session.clone();
            tokio::spawn(async move {
                for n in 0..20 {
                    let staging = staging(&session, &format!("{name}{n}"), n * 10, &["a"]);
                    stage(&store, staging).await.unwrap();
                }
            })
        };
        let tasks = [write(one.clone(), "a"), write(two.clone(), "b"), write(one.clone(), "c")];
        for task in tasks {
            task.await.unwrap();
        }
        drop(one);
        assert_eq!(two.records(RecordFilter::default()).await.unwrap().len(), 60);
    })
    .await;
}

/// Copies the file and its log in the middle of a transaction, as a dying process leaves them.
#[tokio::test]
async fn what_was_not_committed_when_the_process_died_never_was() {
    let (folder, store, session) = begun().await;
    stage(&store, staging(&session, "r", 0, &["a"])).await.unwrap();
    let before = dump(&store, &session).await;
    let log = |path: &Path| std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    let log_before = log(Path::new(store.place()));
    let dying = rusqlite::Connection::open(store.place()).unwrap();
    // The cache is small enough that pages of the open transaction reach the log.
    let half = "PRAGMA cache_size = 1; BEGIN IMMEDIATE; DELETE FROM coverage;
        UPDATE runs SET model = 'half';
        WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 30000)
        INSERT INTO coverage SELECT 1, n, 0, 4, 'half' FROM r";
    dying.execute_batch(half).unwrap();
    let left = folder.path().join("left.db");
    for end in ["", "-wal"] {
        let from = format!("{}{end}", store.place());
        std::fs::copy(from, format!("{}{end}", left.display())).unwrap();
    }
    assert!(log_before < log(&left), "pages of the open transaction are in the log");
    let reopened = Store::open(&left.display().to_string(), OpenMode::Existing).unwrap();
    assert_eq!(dump(&reopened, &session).await, before);
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let (folder, store, session) = begun().await;
    stage(&store, staging(&session, "r", 0, &["a"])).await.unwrap();
    store.status().await.unwrap();
    drop(store);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
