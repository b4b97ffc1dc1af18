//! Rules about the source itself: the layering of modules, where I/O is allowed, the public names,
//! and the shape of functions and comments.

use super::place::{read, walk};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules from the bottom up. A module imports only from rows before its own.
const ROWS: [&[&str]; 14] = [
    &["privacy"],
    &["domain"],
    &["text"],
    &["adapters"],
    &["llm", "transcripts", "slicing"],
    &["search"],
    &[
        "extract", "grounding", "consolidate", "conversation_memory", "dialog_summary",
        "memory_card", "memory_dir", "agents",
    ],
    &["store", "context"],
    &["config"],
    &["pipeline"],
    &["eval"],
    &["rows"],
    &["server"],
    &["cli"],
];
/// Modules that may read the clock, the disk, the network and the environment.
const EFFECTFUL: [&str; 6] = ["adapters", "store", "llm", "eval", "server", "cli"];
/// What only they may do.
const EFFECTS: [&str; 8] = [
    "std::fs", "std::env::", "std::net", "std::process", "tokio::fs", "tokio::net",
    "SystemTime::now", "Instant::now",
];
/// Maximum number of public names.
const PUBLIC_NAMES_MAX: usize = 150;
/// Doc comments that still begin with a clause ("What …", "Whether …"). Lower it with each one that goes.
const CLAUSE_COMMENTS_MAX: usize = 112;

/// A module's file, without its tests.
struct Source {
    path: PathBuf,
    /// Path of the module, without `crate`.
    module: Vec<String>,
    text: String,
}

impl Source {
    fn top(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file that is compiled into the product.
fn sources() -> Vec<Source> {
    let (mut found, mut tests) = (Vec::new(), BTreeSet::new());
    walk(&root(), &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = product(path, &String::from_utf8(read(path)).unwrap(), &mut tests);
            let inside = path.strip_prefix(root()).unwrap().with_extension("");
            let mut module: Vec<String> =
                inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.last().is_some_and(|last| last == "mod" || last == "lib") {
                module.pop();
            }
            found.push(Source { path: path.to_owned(), module, text });
        }
    });
    found.retain(|source| !tests.iter().any(|test| source.path.starts_with(test)));
    found
}

/// The text up to its test module, without comments; adds files that are test modules to `tests`.
fn product(path: &Path, text: &str, tests: &mut BTreeSet<PathBuf>) -> String {
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    };
    let (mut kept, mut is_test, mut named) = (String::new(), false, None);
    for line in text.lines() {
        let line = line.trim();
        if line == "#[cfg(test)]" {
            (is_test, named) = (true, None);
            continue;
        }
        if is_test && let Some(name) = line.strip_prefix("#[path = \"") {
            named = Some(path.with_file_name(name.trim_end_matches("\"]")));
            continue;
        }
        let module = line.split_once("mod ").map(|(_, name)| name);
        if is_test && let Some(name) = module.and_then(|name| name.strip_suffix(';')) {
            tests.insert(named.take().unwrap_or_else(|| folder.join(name).with_extension("rs")));
            tests.insert(folder.join(name));
        } else if is_test && module.is_some_and(|name| name.ends_with('{')) {
            return kept;
        }
        is_test = is_test && line.starts_with("#[");
        if !line.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|modules| modules.contains(&module))
}

#[test]
fn imports_go_one_way() {
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(own) = row(source.top()) else {
            let is_root = matches!(source.top(), "lib" | "main");
            assert!(is_root, "{} has no row: add it to ROWS", source.top());
            continue;
        };
        for rest in source.text.split("crate::").skip(1) {
            let used: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let allowed = used == source.top() || row(&used).is_some_and(|below| below < own);
            if !allowed && row(&used).is_some() {
                wrong.push(format!("{}: {} uses {used}", source.path.display(), source.top()));
            }
        }
        assert!(
            !source.text.contains("use crate::{"),
            "{}: import one module with each `use`",
            source.path.display()
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn effects_stay_in_their_modules() {
    let mut wrong = Vec::new();
    for source in sources() {
        if EFFECTFUL.contains(&source.top()) || source.top() == "main" {
            continue;
        }
        for word in EFFECTS.iter().filter(|word| source.text.contains(**word)) {
            wrong.push(format!("{}: {word}", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An imported or qualified path, and the name it gets.
struct Use {
    is_public: bool,
    path: Vec<String>,
    name: Option<String>,
}

/// Splits a use tree into its paths.
fn expand(prefix: &[String], tree: &str, is_public: bool, uses: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some(inner) = tree.strip_prefix('{') {
        let (mut depth, mut part) = (0, String::new());
        for letter in inner[..inner.rfind('}').unwrap_or(inner.len())].chars().chain([',']) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(prefix, &std::mem::take(&mut part), is_public, uses);
                    continue;
                }
                _ => {}
            }
            part.push(letter);
        }
    } else if let Some((first, rest)) = tree.split_once("::") {
        let prefix: Vec<String> = prefix.iter().cloned().chain([first.trim().to_owned()]).collect();
        expand(&prefix, rest, is_public, uses);
    } else if !tree.is_empty() {
        let (item, alias) = tree.split_once(" as ").unwrap_or((tree, tree));
        let path = prefix.iter().cloned().chain([item.trim().to_owned()]).collect();
        uses.push(Use { is_public, path, name: Some(alias.trim().to_owned()) });
    }
}

/// Paths that a file imports or names.
fn uses_of(text: &str) -> Vec<Use> {
    let text = Regex::new(r"pub\(in [\w:]+\)").unwrap().replace_all(text, "pub").into_owned();
    let import = Regex::new(r"(?m)^(pub(?:\([^)]*\))? )?use ([^;]+);").unwrap();
    let mut uses = Vec::new();
    for found in import.captures_iter(&text) {
        expand(&[], &found[2].replace('\n', " "), found.get(1).is_some(), &mut uses);
    }
    let body = import.replace_all(&text, "");
    let path = Regex::new(r"\b(?:crate|super|self|[a-z_]\w*)(?:::\w+)+").unwrap();
    for found in path.find_iter(&body) {
        if !body[..found.start()].ends_with(':') {
            let path = found.as_str().split("::").map(str::to_owned).collect();
            uses.push(Use { is_public: false, path, name: None });
        }
    }
    uses
}

/// Files by module path, with what each imports and re-exports.
struct Graph {
    modules: BTreeSet<Vec<String>>,
    reexports: BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>,
}

impl Graph {
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let base = match path.first().map(String::as_str) {
            Some("crate") => return Some(path[1..].to_vec()),
            Some("self") => return Some([module, &path[1..]].concat()),
            Some("super") => &module[..module.len().saturating_sub(supers)],
            Some(first) => {
                let child = [module, &[first.to_owned()]].concat();
                return self.modules.contains(&child).then(|| [module, path].concat());
            }
            None => return None,
        };
        Some([base, &path[supers..]].concat())
    }

    /// The module whose file defines what `path` names; re-exports are followed.
    fn definition(&self, path: &[String], depth: usize) -> Vec<String> {
        let length = (0..=path.len()).rev().find(|length| self.modules.contains(&path[..*length]));
        let module = path[..length.unwrap_or(0)].to_vec();
        let target = path.get(module.len()).and_then(|name| self.reexports.get(&module)?.get(name));
        match target {
            Some(target) if depth < 8 && target != path => {
                self.definition(&[target, &path[module.len() + 1..]].concat(), depth + 1)
            }
            _ => module,
        }
    }
}

/// Groups of files that import one another.
fn cycles(sources: &[Source]) -> Vec<BTreeSet<Vec<String>>> {
    let modules = sources.iter().map(|source| source.module.clone()).collect();
    let mut graph = Graph { modules, reexports: BTreeMap::new() };
    let uses: Vec<Vec<Use>> = sources.iter().map(|source| uses_of(&source.text)).collect();
    for (source, uses) in sources.iter().zip(&uses) {
        for found in uses.iter().filter(|found| found.is_public) {
            if let (Some(name), Some(path)) =
                (&found.name, graph.absolute(&source.module, &found.path))
            {
                let names = graph.reexports.entry(source.module.clone()).or_default();
                names.insert(name.clone(), path);
            }
        }
    }
    let mut edges: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (source, uses) in sources.iter().zip(&uses) {
        let own = edges.entry(source.module.clone()).or_default();
        for found in uses.iter().filter(|found| !found.is_public) {
            let Some(path) = graph.absolute(&source.module, &found.path) else { continue };
            let target = graph.definition(&path, 0);
            if target != source.module && !target.is_empty() {
                own.insert(target);
            }
        }
    }
    let reach = |from: &Vec<String>| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            for next in edges.get(module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = edges.keys().map(|module| (module, reach(module))).collect();
    let mut groups = Vec::new();
    let mut grouped = BTreeSet::new();
    for (module, seen) in &reached {
        if seen.contains(*module) && !grouped.contains(*module) {
            let group: BTreeSet<_> = seen
                .iter()
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)))
                .cloned()
                .collect();
            grouped.extend(group.clone());
            groups.push(group);
        }
    }
    groups
}

#[test]
fn files_import_one_another_without_cycles() {
    let cycles = cycles(&sources());
    let shown: Vec<String> = cycles
        .iter()
        .map(|group| group.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(" "))
        .collect();
    assert!(shown.is_empty(), "{} cycles:\n{}", shown.len(), shown.join("\n"));
}

#[test]
fn a_cycle_is_found() {
    let source = |module: &str, text: &str| Source {
        path: PathBuf::new(),
        module: module.split("::").map(str::to_owned).collect(),
        text: text.to_owned(),
    };
    let re_exported = [
        source("a", "mod b;\nmod c;\npub use b::B;\n"),
        source("a::b", "pub struct B;\n"),
        source("a::c", "use super::B;\n"),
    ];
    assert!(cycles(&re_exported).is_empty());
    let cyclic = [
        source("a", "mod b;\nstruct A;\nfn f() { b::g(); }\n"),
        source("a::b", "use super::A;\nfn g() {}\n"),
    ];
    assert_eq!(cycles(&cyclic).len(), 1);
}

#[test]
fn no_function_takes_a_tuple_of_arguments() {
    let packed =
        Regex::new(r"\bfn \w+(?:<[^>{]*>)?\((?:[^()]|\([^()]*\))*?\((?:mut )?\w+, [\w, ]+\)\s*: ")
            .unwrap();
    let mut wrong = Vec::new();
    for source in sources() {
        for found in packed.find_iter(&source.text) {
            wrong.push(format!("{}: {}", source.path.display(), found.as_str()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}, use a struct with named fields:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Names that the library exports, in the order of `lib.rs`.
fn public_names() -> Vec<String> {
    let text = String::from_utf8(read(&root().join("lib.rs"))).unwrap();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n")
        // Only a build for fuzzing has these.
        .replace("#[cfg(fuzzing)]\npub use", "use");
    let mut uses = Vec::new();
    for found in Regex::new(r"(?m)^pub use ([^;]+);").unwrap().captures_iter(&code) {
        expand(&[], &found[1].replace('\n', " "), true, &mut uses);
    }
    uses.into_iter().filter_map(|found| found.name).collect()
}

#[test]
fn public_names_are_listed() {
    let mut names = public_names();
    names.sort();
    assert!(names.len() <= PUBLIC_NAMES_MAX, "{} public names", names.len());
    insta::assert_snapshot!("public_names", names.join("\n"));
}

/// PostgreSQL takes a parameter's type from where it stands first, and `IS NULL` gives it none.
#[test]
fn a_parameter_of_sql_is_compared_before_it_is_asked_for_null() {
    let untyped = Regex::new(r"\?\d+ IS (NOT )?NULL (OR|AND)").unwrap();
    let store = sources().into_iter().filter(|source| source.top() == "store");
    let wrong: Vec<PathBuf> =
        store.filter(|source| untyped.is_match(&source.text)).map(|it| it.path).collect();
    assert!(wrong.is_empty(), "{wrong:?}: write `x = ?N OR ?N IS NULL`");
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let clause = Regex::new(r"(?m)^\s*//[/!] (?:What|Whether|Who|Whose|How|Of which) ").unwrap();
    let mut found = Vec::new();
    walk(&root(), &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = String::from_utf8(read(path)).unwrap();
            let count = clause.find_iter(&text).count();
            found.extend((0 < count).then(|| (count, path.to_owned())));
        }
    });
    let sum: usize = found.iter().map(|(count, _)| count).sum();
    found.sort();
    assert!(sum <= CLAUSE_COMMENTS_MAX, "{sum} doc comments begin with a clause: {found:?}");
}

#[test]
fn tests_are_told_from_the_product() {
    let mut tests = BTreeSet::new();
    let text = "use a;\n#[cfg(test)]\nmod fixture;\n#[cfg(test)]\n#[path = \"x_test.rs\"]\nmod t;\n\
                fn b() {}\n#[cfg(test)]\nmod tests {\nuse c;\n}\n";
    let kept = product(Path::new("r/x.rs"), text, &mut tests);
    assert!(kept.contains("use a;") && kept.contains("fn b()") && !kept.contains("use c;"));
    for path in ["r/x/fixture.rs", "r/x_test.rs"] {
        assert!(tests.contains(Path::new(path)), "{path}: {tests:?}");
    }
    assert!(sources().len() > 60);
}
