use super::read;
use crate::source::agent::{Item, testing};

#[test]
fn probe() {
    for folder in ["codex", "codex/fixtures", "large"] {
        for (name, bytes) in testing::samples(folder) {
            if name.starts_with("claude") {
                continue;
            }
            let items = testing::items(read, &bytes);
            let mut c = std::collections::BTreeMap::<String, u32>::new();
            for i in &items {
                let k = match i {
                    Item::Entry(e) => format!(
                        "{}/{}{}{} {:?}",
                        e.speaker.name(),
                        e.kind.name(),
                        e.skip.map_or(String::new(), |s| format!("({})", s.name())),
                        if e.branch.name() == "active" { "" } else { e.branch.name() },
                        e.outcome
                    ),
                    Item::Finding(f) => format!("{}", f.rule),
                    Item::Session(s) => format!("{} {:?} {:?}", s.native_id, s.title, s.parent),
                };
                *c.entry(k).or_default() += 1;
            }
            println!("== {name} {c:#?}");
            if std::option_env!("DUMP") == Some(name.as_str()) {
                for i in &items {
                    println!("{}", testing::shown(i).chars().take(200).collect::<String>());
                }
            }
        }
    }
}
