//! What accepting and taking away does to the answers that are kept.

use super::super::ask::tests::question;
use super::*;
use crate::domain::{Finish, Reply, Request, Rung, Usage};
use crate::privacy::Gate;
use proptest::prelude::*;

/// The question of a number; the same number is the same question.
fn request(number: u32) -> Request {
    Request { generation: number, ..question(Rung::ForcedTool) }
}

fn reply(words: u32) -> Reply {
    Reply {
        calls: Vec::new(),
        content: Gate::new(&[]).redact(&format!("answer {words}")),
        refusal: None,
        finish: Finish::Stop,
        usage: Usage::default(),
    }
}

/// A file that answers questions by number.
fn file(origin: Origin, answers: &[(u32, u32)]) -> CassetteFile {
    let mut file = CassetteFile::new(origin, "about");
    answers.iter().for_each(|(number, words)| file.push(&request(*number), &reply(*words)));
    file
}

fn kept(files: &[(&str, CassetteFile)]) -> Kept {
    Kept { files: files.iter().map(|(name, file)| ((*name).to_owned(), file.clone())).collect() }
}

/// What is answered, by file: question and answer.
fn answers(kept: &Kept, numbers: u32) -> BTreeMap<(String, u32), String> {
    let mut all = BTreeMap::new();
    for (name, file) in &kept.files {
        for number in 0..numbers {
            let digest = request(number).digest();
            let of = file.exchanges.iter().filter(|it| it.request.digest == digest);
            for it in of {
                let words = it.reply.reply().content.as_str().to_owned();
                assert_eq!(all.insert((name.clone(), number), words), None);
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn nothing_goes_unseen_and_what_is_new_is_what_answers(
        old in prop::collection::btree_map(0..8_u32, 0..3_u32, 0..6),
        other in prop::collection::btree_map(8..12_u32, 0..3_u32, 0..3),
        new in prop::collection::btree_map(0..12_u32, 0..3_u32, 0..8),
        ways in prop::collection::vec(prop::collection::vec(0..12_u32, 2..3), 0..2),
    ) {
        let pairs = |of: &BTreeMap<u32, u32>| of.iter().map(|it| (*it.0, *it.1)).collect::<Vec<_>>();
        let before = kept(&[
            ("m", file(Origin::Recorded, &pairs(&old))),
            ("other", file(Origin::HandWritten, &pairs(&other))),
        ]);
        let digests = |of: &Vec<u32>| of.iter().map(|it| request(*it).digest()).collect::<Vec<_>>();
        let ways: Vec<Vec<RequestDigest>> = ways.iter().map(digests).collect();
        let came = before.accepting("m", &file(Origin::Recorded, &pairs(&new)), &ways).unwrap();
        let cassette = came.kept.cassette();
        for (number, words) in &new {
            let answer = cassette.kept(&request(*number)).unwrap().0;
            prop_assert_eq!(answer, &reply(*words));
        }
        let shown: BTreeSet<RequestDigest> =
            came.replaced.iter().chain(&came.outdone).map(|it| it.1).collect();
        for (number, words) in old.iter().chain(&other) {
            let request = request(*number);
            match cassette.kept(&request) {
                Some((answer, _)) if *answer == reply(*words) => {}
                Some(_) | None => prop_assert!(shown.contains(&request.digest())),
            }
        }
        let gone = came.replaced.len() + came.outdone.len();
        prop_assert_eq!(came.same + came.others + gone, old.len() + other.len());
        prop_assert_eq!(came.same + came.replaced.len() + came.added, new.len());
        prop_assert_eq!(cassette.len(), came.same + came.others + came.replaced.len() + came.added);
        let again = came.kept.accepting("m", &file(Origin::Recorded, &pairs(&new)), &[]).unwrap();
        prop_assert_eq!((again.kept, again.added), (came.kept, 0), "twice is once");
    }
}

#[test]
fn an_answer_in_another_way_takes_the_place_of_the_first() {
    let before = kept(&[("m", file(Origin::Recorded, &[(1, 1), (3, 3)]))]);
    let ways = [vec![request(1).digest(), request(2).digest()]];
    let came = before.accepting("m", &file(Origin::Recorded, &[(2, 2)]), &ways).unwrap();
    assert_eq!(came.outdone, [("m".to_owned(), request(1).digest())]);
    let left: Vec<u32> = answers(&came.kept, 5).into_keys().map(|(_, number)| number).collect();
    assert_eq!((left, came.others), (vec![2, 3], 1));
}

#[test]
fn a_file_has_one_origin() {
    let before = kept(&[("m", file(Origin::HandWritten, &[(1, 1), (2, 2)]))]);
    let came = before.accepting("m", &file(Origin::Recorded, &[(2, 9), (3, 3)]), &[]).unwrap();
    let keys: Vec<(String, u32)> = answers(&came.kept, 5).into_keys().collect();
    let [m, other] = ["m", "m-recorded"].map(str::to_owned);
    assert_eq!(keys, [(m, 1), (other.clone(), 2), (other, 3)]);
    let whole = before.accepting("m", &file(Origin::Recorded, &[(1, 1), (2, 9)]), &[]).unwrap();
    assert_eq!(answers(&whole.kept, 5).len(), 2);
    let taken = kept(&[
        ("m", file(Origin::HandWritten, &[(1, 1)])),
        ("m-recorded", file(Origin::Imported, &[(2, 2)])),
    ]);
    let wrong = taken.accepting("m", &file(Origin::Recorded, &[(3, 3)]), &[]).unwrap_err();
    assert!(wrong.contains("m.json and m-recorded.json: its origin is not recorded"), "{wrong}");
}

#[test]
fn only_what_differs_is_written_and_a_file_goes_with_its_last_answer() {
    let place = tempfile::tempdir().unwrap();
    let before = kept(&[
        ("a", file(Origin::Recorded, &[(1, 1)])),
        ("b", file(Origin::Recorded, &[(2, 2), (3, 3)])),
    ]);
    before.write(place.path(), &Kept::default()).unwrap();
    assert_eq!(Kept::load(place.path()).unwrap(), before);
    let gone = [request(1).digest(), request(3).digest()].into();
    let left = before.without(&gone);
    left.write(place.path(), &before).unwrap();
    assert_eq!(Kept::load(place.path()).unwrap(), left);
    assert_eq!(answers(&left, 5).into_keys().collect::<Vec<_>>(), [("b".to_owned(), 2)]);
    assert!(!place.path().join("a.json").exists());
    let asked = [request(2).digest()].into();
    assert_eq!(before.unasked(&asked).map(|(file, ..)| file).collect::<Vec<_>>(), ["a", "b"]);
    assert!(left.cassette().is_all_of(&asked) && !before.cassette().is_all_of(&asked));
    disk_file(place.path(), "c.json");
    assert!(Kept::load(place.path()).unwrap_err().contains("c.json"));
    assert_eq!(Kept::load(&place.path().join("no")).unwrap(), Kept::default());
}

fn disk_file(folder: &Path, name: &str) {
    crate::edge::disk::replace(&folder.join(name), "no cassette").unwrap();
}
