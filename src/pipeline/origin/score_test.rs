use super::*;

const ID: &str = "edf934071cf63a7a4d80a1c222bb66ddc7b2f0cd";

#[track_caller]
fn check(clues: &[Clue], rival: Option<i32>, expected: Certainty) {
    assert!(points(clues).is_some(), "{clues:?}");
    assert_eq!(certainty(clues, rival), expected, "{clues:?}");
}

#[test]
fn who_wrote_the_file_while_the_commit_was_made_is_sure() {
    use Clue::{
        During, EndedBefore, Names, OtherBranch, SameBranch, SameProject, Wrote, WroteLine,
    };
    check(&[Wrote, During, SameProject], None, Certainty::Sure);
    check(&[Wrote, EndedBefore(HOUR), SameProject], None, Certainty::Likely);
    check(&[Wrote, EndedBefore(HOUR), SameProject, SameBranch], None, Certainty::Likely);
    check(&[Wrote, WroteLine, EndedBefore(DAY), SameProject], None, Certainty::Sure);
    check(&[Wrote, EndedBefore(SLACK), SameProject], None, Certainty::Guess);
    check(&[Wrote, During, SameProject, OtherBranch], None, Certainty::Likely);
    check(&[Names, During, SameProject], None, Certainty::Likely);
    check(&[Clue::Committed, EndedBefore(HOUR)], None, Certainty::Sure);
}

#[test]
fn the_time_and_the_place_alone_are_a_guess_and_the_time_alone_is_nothing() {
    use Clue::{During, EndedBefore, SameBranch, SameProject};
    check(&[During, SameProject, SameBranch], None, Certainty::Guess);
    assert_eq!(points(&[During]), None);
    assert_eq!(points(&[EndedBefore(DAY), SameProject]), None);
}

#[test]
fn of_two_that_fit_alike_neither_is_sure() {
    let clues = [Clue::Wrote, Clue::During, Clue::SameProject];
    check(&clues, points(&clues), Certainty::Likely);
    check(&clues, points(&clues[1..]), Certainty::Sure);
}

#[test]
fn a_session_that_began_later_or_ended_long_before_does_not_fit() {
    let hour = 3_600_000;
    let clue = |at| time_clue(Timestamp(hour), Timestamp(2 * hour), Timestamp(at));
    assert_eq!(clue(hour - 1), None);
    assert_eq!(clue(2 * hour), Some(Clue::During));
    assert_eq!(clue(3 * hour), Some(Clue::EndedBefore(HOUR)));
    assert_eq!(clue(2 * hour + 7 * 24 * hour + 1), None);
}

#[test]
fn files_are_the_same_where_one_path_ends_the_other() {
    for named in ["/home/ana/shop/src/queue.rs", "./src/queue.rs", "src/queue.rs", "queue.rs"] {
        assert!(is_same_file(named, "src/queue.rs"), "{named}");
    }
    for named in ["", "src/my_queue.rs", "lib/queue.rs", "ueue.rs"] {
        assert!(!is_same_file(named, "src/queue.rs"), "{named}");
    }
}

#[test]
fn writing_tools_are_told_from_reading_ones() {
    let path = "src/queue.rs";
    assert!(writes("Edit", "/home/ana/src/queue.rs\nlet a = 1;", path));
    assert!(writes("shell", "apply_patch\n*** Update File: src/queue.rs\n+a", path));
    assert!(writes("write_to_file", r#"{"path":"src/queue.rs","content":"a"}"#, path));
    assert!(!writes("Read", r#"{"file_path":"src/queue.rs"}"#, path));
    assert!(!writes("Edit", "src/main.rs\n// see src/queue.rs", path));
    assert!(!writes("Bash", "cat src/queue.rs", path));
}

#[test]
fn a_commit_is_known_by_its_command_and_by_what_git_prints_then() {
    assert!(commits("git add . && git commit -m \"Claim jobs\"", ID, "Claim jobs"));
    assert!(commits("[main edf9340] Claim jobs\n 1 file", ID, "other words"));
    assert!(commits("ok\n[main (root-commit) edf93407] Claim", ID, "other words"));
    for text in ["edf9340 Claim jobs", "git log: Claim jobs", "[main edf9341] x", "see [edf9340]"] {
        assert!(!commits(text, ID, "Claim jobs"), "{text}");
    }
}

#[test]
fn a_line_names_what_it_defines_and_what_has_several_words() {
    assert_eq!(
        symbols("    let retryLimit = jobs.claim_next(RETRY_MAX);"),
        ["retryLimit", "claim_next", "RETRY_MAX"]
    );
    assert_eq!(symbols("pub struct Queue {"), ["Queue"]);
    assert_eq!(symbols("} // the end of it"), [] as [&str; 0]);
}

#[test]
fn the_definition_around_a_line_is_the_nearest_with_less_indentation() {
    let above: Vec<String> =
        ["fn before() {", "}", "impl Queue {", "    fn claim_next(&self) {", "        let a = 1;"]
            .map(str::to_owned)
            .to_vec();
    assert_eq!(enclosing(&above, "        self.take()").as_deref(), Some("claim_next"));
    assert_eq!(enclosing(&above, "    }").as_deref(), Some("Queue"));
    assert_eq!(enclosing(&above, "}"), None);
}
