//! The block of rules and decisions in a file that people own.

use super::place::{Place, read};

const RULES: &str =
    "# Patterns\n\n## Conventions\n- Never touch the vendor folder.\n- Call the port 8443.\n";

fn with_memory() -> Place {
    let place = Place::new();
    assert_eq!(place.run(&["memory", "init"]).code, 0);
    place.write(".claude/memory/patterns.md", RULES);
    place
}

fn text(place: &Place, name: &str) -> String {
    String::from_utf8(read(&place.path(name))).unwrap()
}

#[test]
fn the_block_is_written_once_checked_renewed_and_removed_and_all_around_it_stays() {
    let place = with_memory();
    let own = "\u{feff}# Ours\r\n\r\nNo line end at the end";
    place.write("CLAUDE.md", own);
    let publish = |more: &[&str]| place.run(&[&["publish", "CLAUDE.md"], more].concat());
    let checked = publish(&["--check"]);
    assert!(checked.code == 1 && checked.stderr.contains("out of date"), "{}", checked.stderr);
    assert!(checked.stdout.contains("+ - Never touch the vendor folder"), "{}", checked.stdout);
    assert_eq!(text(&place, "CLAUDE.md"), own, "a check writes nothing");
    assert_eq!(publish(&[]).code, 0);
    let first = text(&place, "CLAUDE.md");
    assert!(first.starts_with(own) && first.contains("vendor folder") && !first.ends_with('\n'));
    assert_eq!(first.matches('\n').count(), first.matches("\r\n").count());
    assert_eq!((publish(&["--check"]).code, publish(&[]).code), (0, 0));
    assert_eq!(text(&place, "CLAUDE.md"), first, "the same memory gives the same bytes");
    place.write(".claude/memory/patterns.md", RULES.replace("vendor", "driver"));
    let told = place.json(&["publish", "CLAUDE.md", "--json"]);
    assert!(told["changed"] == true && told["tokens"].as_u64() > Some(0), "{told}");
    assert_eq!(text(&place, "CLAUDE.md"), first.replace("vendor", "driver"));
    assert_eq!(publish(&["--remove"]).code, 0);
    assert_eq!(text(&place, "CLAUDE.md"), own);
    let again = publish(&["--remove"]);
    assert!(again.code == 0 && again.stderr.contains("CLAUDE.md contains no block"));
    let missing = place.run(&["publish", "--remove"]);
    assert!(missing.code == 0 && missing.stderr.contains("AGENTS.md does not exist"));
}

#[test]
fn a_file_that_came_with_the_block_goes_with_it_and_a_budget_bounds_it() {
    let place = with_memory();
    let many: String = (0..400).map(|n| format!("- Rule {n} holds for roof {n}.\n")).collect();
    place.write(".claude/memory/patterns.md", format!("{RULES}{many}"));
    let told = place.json(&["publish", "--budget", "600", "--json"]);
    assert!(told["tokens"].as_u64() <= Some(600) && told["omitted"].as_u64() > Some(0), "{told}");
    assert!(text(&place, "AGENTS.md").chars().count() < 600 * 4 + 200);
    assert_eq!(place.run(&["publish", "--remove"]).code, 0);
    assert!(!place.path("AGENTS.md").exists());
}

#[test]
fn rules_that_cannot_be_read_stay_published() {
    let place = with_memory();
    assert_eq!(place.run(&["publish"]).code, 0);
    let before = text(&place, "AGENTS.md");
    for ruined in [&b"# Patterns\n- x\xff\n"[..], b"\n"] {
        place.write(".claude/memory/patterns.md", ruined);
        for args in [&["publish"][..], &["publish", "--check"]] {
            place.run(args).refused(1, &["patterns.md: is ", "AGENTS.md", "repair or delete"]);
        }
        assert_eq!(text(&place, "AGENTS.md"), before);
        let context = place.run(&["context"]);
        assert!(context.stderr.contains("patterns.md: is "), "{}", context.stderr);
    }
    place.write(".claude/memory/glossary.md", b"\xff");
    assert_eq!(place.run(&["publish", "--remove"]).code, 0);
    place.write(".claude/memory/patterns.md", RULES);
    assert_eq!(place.run(&["publish"]).code, 0, "it takes nothing from the glossary");
    assert_eq!(text(&place, "AGENTS.md"), before);
}

#[test]
fn a_link_out_of_the_project_and_marks_that_are_no_pair_are_refused() {
    let (place, other) = (with_memory(), Place::new());
    let outside = other.write("outside.md", "theirs\n");
    std::os::unix::fs::symlink(&outside, place.path("AGENTS.md")).unwrap();
    place.run(&["publish"]).refused(2, &["AGENTS.md", "is outside"]);
    place.write(".git/config", "[core]\n");
    for file in ["annalist.toml", ".git/config", ".gitattributes", ".claude/memory/patterns.md"] {
        place.run(&["publish", file]).refused(2, &[file, "AGENTS.md"]);
    }
    place.run(&["publish", outside.to_str().unwrap()]).refused(2, &["is outside"]);
    assert_eq!(text(&other, "outside.md"), "theirs\n");
    place.write("CLAUDE.md", "<!-- annalist:end -->\n");
    place.run(&["publish", "CLAUDE.md"]).refused(2, &["CLAUDE.md", "annalist:begin"]);
}
