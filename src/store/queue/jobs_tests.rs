use super::super::super::fixture::{Kind, Place, on_each_store, staging};
use super::super::tests::{claim, intake, job, of};
use super::super::{JobEnding, JobRelease};
use super::*;
use crate::domain::*;

/// Creates a job in each state but cut, in two namespaces: a done, b waiting, c leased, d
/// cancelled, e dead, f ready.
async fn every_state(kind: Kind) -> (Place, Store, Session) {
    let (place, store, session) = kind.begun().await;
    store.enqueue(intake(&session, &["a", "b", "c", "d", "e"])).await.unwrap();
    store.enqueue(intake(&of("other", "o"), &["f"])).await.unwrap();
    let of_project = store.claim(claim(2, 100)).await.unwrap().jobs;
    let rest = store.claim(claim(9, 100)).await.unwrap().jobs;
    let lease = |name: &str| {
        let id = job(name, (0, 0)).id;
        of_project.iter().chain(&rest).find(|it| it.job.id == id).unwrap().lease
    };
    let mut run = staging(&session, "run", 0, &[]);
    run.run.slice = job("a", (0, 0)).slice;
    store.finish(lease("a"), Some(run), JobEnding::Done, Timestamp(110)).await.unwrap();
    let wait = Some((Wait::BackOff, Timestamp(500), "it was busy".to_owned()));
    let release = JobRelease { wait, charged: true };
    store.release(lease("b"), release, Timestamp(110)).await.unwrap();
    store.cancel(vec![job("d", (0, 0)).id], Timestamp(110)).await.unwrap();
    let dead = JobEnding::Dead {
        kind: "refused".to_owned(),
        detail: "the model would not".to_owned(),
        asking: Digest::of(&["asking"]),
    };
    store.finish(lease("e"), None, dead, Timestamp(110)).await.unwrap();
    store
        .release(lease("f"), JobRelease { wait: None, charged: false }, Timestamp(110))
        .await
        .unwrap();
    (place, store, session)
}

#[tokio::test]
async fn what_is_open_or_dead_is_listed_the_oldest_first_unless_states_are_named() {
    on_each_store(async |kind| {
        let (_place, store, session) = every_state(kind).await;
        let listed = |filter| async {
            let jobs = store.jobs(filter).await.unwrap();
            let name = |it: &StoredJob| {
                ["a", "b", "c", "d", "e", "f"]
                    .into_iter()
                    .find(|name| job(name, (0, 0)).id == it.id)
            };
            jobs.iter().filter_map(name).collect::<String>()
        };
        let all = JobFilter { states: JobState::ALL.to_vec(), ..JobFilter::default() };
        assert_eq!(listed(JobFilter::default()).await, "bcef");
        assert_eq!(listed(all.clone()).await, "abcdef");
        let states = vec![JobState::Done, JobState::Cancelled];
        assert_eq!(listed(JobFilter { states, ..JobFilter::default() }).await, "ad");
        assert_eq!(listed(JobFilter { limit: Some(3), ..all.clone() }).await, "abc");
        let namespace = Some("other".to_owned());
        assert_eq!(listed(JobFilter { namespace, ..all.clone() }).await, "f");
        let session = Some(IdPrefix::from(session.id.0));
        assert_eq!(listed(JobFilter { session, limit: Some(4), ..all }).await, "abcd");
    })
    .await;
}

#[tokio::test]
async fn a_job_is_found_by_the_beginning_of_its_id() {
    on_each_store(async |kind| {
        let (_place, store, session) = every_state(kind).await;
        let found = async |name| {
            let prefix = job(name, (0, 0)).id.to_string()[..9].parse().unwrap();
            let PrefixLookup::One(found) = store.job(prefix).await.unwrap() else {
                panic!("not found")
            };
            found
        };
        let done = found("a").await;
        assert_eq!((done.session, done.finished_at), (session.id, Some(Timestamp(110))));
        let waiting = found("b").await;
        assert_eq!(waiting.reason.as_deref(), Some(Wait::BackOff.name()));
        assert_eq!(waiting.detail.as_deref(), Some("it was busy"));
        assert_eq!(waiting.until, Some(Timestamp(500)));
        let leased = found("c").await;
        assert_eq!((leased.state, leased.holder.as_deref()), (JobState::Leased, Some("w")));
        let dead = found("e").await;
        assert_eq!(dead.reason.as_deref(), Some("refused"));
        let nobody = IdPrefix::from(Digest::of(&["nobody"]));
        assert_eq!(store.job(nobody).await.unwrap(), PrefixLookup::None);
    })
    .await;
}
