//! The files of a cassette as they are written: what accepting new answers does to them, and what is left when some
//! go. Changes nothing unless it is told to write.

use super::cassette::{Cassette, case_of};
use super::cassette_file::{CassetteFile, Exchange, Origin};
use super::kept_prompt::KeptPrompts;
use crate::domain::{EMBEDDING, RequestDigest};
use crate::edge::cases::take_away;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// The files of a folder, by their names without `.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    files: BTreeMap<String, CassetteFile>,
}

/// What accepting a file does to the answers that are kept, each of them counted once.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepting {
    /// The files as they will be.
    pub kept: Kept,
    /// Answers to requests that none was kept for.
    pub added: usize,
    /// Answers that are kept already.
    pub same: usize,
    /// Answers that go since the new file answers the same request otherwise: each with its file.
    pub replaced: Vec<(String, RequestDigest)>,
    /// Answers that go since the new file answers the same question asked in another way: each with its file.
    pub outdone: Vec<(String, RequestDigest)>,
    /// Answers that stay though the new file knows nothing of them.
    pub others: usize,
}

impl Kept {
    /// Reads every file of a folder; none if there is no such folder.
    ///
    /// # Errors
    /// One line: which file cannot be read, and why. What cannot be read cannot be kept.
    pub fn load(folder: &Path) -> Result<Kept, String> {
        let wrong = |error: io::Error| format!("{}: cannot be read: {error}", folder.display());
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
            Err(error) => return Err(wrong(error)),
        };
        let mut files = BTreeMap::new();
        for entry in entries {
            let path = entry.map_err(wrong)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                files.insert(case_of(&path), Cassette::read_file(&path)?);
            }
        }
        Ok(Kept { files })
    }

    /// One file alone.
    pub fn one(name: &str, file: CassetteFile) -> Kept {
        Kept { files: BTreeMap::from([(name.to_owned(), file)]) }
    }

    /// The requests that are answered.
    pub fn requests(&self) -> BTreeSet<RequestDigest> {
        self.files.values().flat_map(CassetteFile::requests).collect()
    }

    /// Of the answers to `unasked` requests those that were made with another prompt than those at hand. Where there are
    /// some, embeddings may be of what they say.
    pub fn of_other_prompts(
        &self,
        unasked: &BTreeSet<RequestDigest>,
        prompts: &KeptPrompts,
    ) -> BTreeSet<RequestDigest> {
        let all = self.files.values().flat_map(|file| &file.exchanges).map(|it| &it.request);
        let unasked = all.filter(|it| unasked.contains(&it.digest));
        let (embeddings, talks): (Vec<_>, Vec<_>) = unasked.partition(|it| it.tool == EMBEDDING);
        let others = talks.into_iter().filter(|it| prompts.is_other(it)).map(|it| it.digest);
        let mut others: BTreeSet<RequestDigest> = others.collect();
        if !others.is_empty() {
            others.extend(embeddings.into_iter().map(|it| it.digest));
        }
        others
    }

    /// All of it as one cassette; what answers the same twice is told when the folder is read as one.
    pub fn cassette(&self) -> Cassette {
        let (mut cassette, mut findings) = (Cassette::default(), Vec::new());
        for (name, file) in &self.files {
            cassette.add(name, file, &mut findings);
        }
        cassette
    }

    /// What comes of it if the answers of `new` are accepted under `name`, request by request. `ways` are the ways to
    /// ask one question, which go together: an answer in one way takes the place of those in the others.
    ///
    /// # Errors
    /// One line, if there is no file for it: one has a single origin for all of its answers.
    pub fn accepting(
        &self,
        name: &str,
        new: &CassetteFile,
        ways: &[Vec<RequestDigest>],
    ) -> Result<Accepting, String> {
        let answers: BTreeMap<RequestDigest, &Exchange> =
            new.exchanges.iter().rev().map(|it| (it.request.digest, it)).collect();
        let asked_so = ways.iter().filter(|it| it.iter().any(|it| answers.contains_key(it)));
        let outdone: BTreeSet<&RequestDigest> = asked_so.flatten().collect();
        let mut came = Accepting {
            kept: Kept::default(),
            added: 0,
            same: 0,
            replaced: Vec::new(),
            outdone: Vec::new(),
            others: 0,
        };
        let mut held = BTreeSet::new();
        for (file, of) in &self.files {
            let mut left = CassetteFile { exchanges: Vec::new(), ..of.clone() };
            for it in &of.exchanges {
                let digest = it.request.digest;
                match answers.get(&digest) {
                    Some(new) if new.reply.reply() == it.reply.reply() => {
                        held.insert(digest);
                        came.same += 1;
                    }
                    Some(_) => {
                        came.replaced.push((file.clone(), digest));
                        continue;
                    }
                    None if outdone.contains(&digest) => {
                        came.outdone.push((file.clone(), digest));
                        continue;
                    }
                    None => came.others += 1,
                }
                left.exchanges.push(it.clone());
            }
            if !left.exchanges.is_empty() || of.exchanges.is_empty() {
                came.kept.files.insert(file.clone(), left);
            }
        }
        let replaced: BTreeSet<RequestDigest> = came.replaced.iter().map(|(_, it)| *it).collect();
        let mut seen = BTreeSet::new();
        let fresh =
            |it: &&Exchange| !held.contains(&it.request.digest) && seen.insert(it.request.digest);
        let fresh: Vec<Exchange> = new.exchanges.iter().filter(fresh).cloned().collect();
        came.added = fresh.iter().filter(|it| !replaced.contains(&it.request.digest)).count();
        if !fresh.is_empty() {
            came.kept.put(name, new, fresh)?;
        }
        Ok(came)
    }

    /// Puts exchanges into the file of a name; into one with the origin in its name where that has another origin.
    fn put(&mut self, name: &str, of: &CassetteFile, fresh: Vec<Exchange>) -> Result<(), String> {
        let names = [name.to_owned(), format!("{name}-{}", origin(of.origin))];
        let fits = |name: &&String| self.files.get(*name).is_none_or(|it| it.origin == of.origin);
        let name = names.iter().find(fits).ok_or_else(|| {
            let origin = origin(of.origin);
            format!(
                "{}.json: its origin is not {origin}: give it another name",
                names.join(".json and ")
            )
        })?;
        let empty = CassetteFile { exchanges: Vec::new(), ..of.clone() };
        let file = self.files.entry(name.clone()).or_insert(empty);
        file.about.clone_from(&of.about);
        file.exchanges.extend(fresh);
        Ok(())
    }

    /// The same without some answers; a file that has no other goes with them.
    pub fn without(&self, gone: &BTreeSet<RequestDigest>) -> Kept {
        let mut left = self.clone();
        left.files.retain(|_, file| {
            let before = file.exchanges.len();
            file.exchanges.retain(|it| !gone.contains(&it.request.digest));
            !file.exchanges.is_empty() || before == 0
        });
        left
    }

    /// The answers to requests that are not among those `asked`, each with its file, and the model that it names
    /// where that is one who talks.
    pub fn unasked<'k>(
        &'k self,
        asked: &BTreeSet<RequestDigest>,
    ) -> impl Iterator<Item = (&'k str, RequestDigest, Option<&'k str>)> {
        let all = self.files.iter().flat_map(|(name, file)| {
            file.exchanges.iter().map(move |it| (name.as_str(), &it.request))
        });
        all.filter(|(_, it)| !asked.contains(&it.digest))
            .map(|(name, it)| (name, it.digest, it.talker()))
    }

    /// Writes what differs from `before` to the folder, first what comes and then what goes, so that whoever is
    /// stopped between two files has an answer twice and not none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path, before: &Kept) -> io::Result<()> {
        let more = |name: &String, file: &CassetteFile| {
            before.files.get(name).is_none_or(|old| old.exchanges.len() < file.exchanges.len())
        };
        let changed = self.files.iter().filter(|(name, it)| before.files.get(*name) != Some(it));
        let (grown, shrunk): (Vec<_>, Vec<_>) = changed.partition(|(name, it)| more(name, it));
        for (name, file) in grown.into_iter().chain(shrunk) {
            file.save(folder, name)?;
        }
        for name in before.files.keys().filter(|name| !self.files.contains_key(*name)) {
            take_away(&folder.join(format!("{name}.json")))?;
        }
        Ok(())
    }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Recorded => "recorded",
        Origin::HandWritten => "hand-written",
        Origin::Imported => "imported",
    }
}

#[cfg(test)]
#[path = "kept_test.rs"]
mod tests;
