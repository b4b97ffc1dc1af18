//! Finds the conversations behind a line of code: the sessions that were active when its commit was made, and the
//! records about it.

mod score;

pub(crate) use score::Certainty;

use super::noting::is_of_note;
use super::searching::{HitState, SearchHit, SearchRequest, search};
use crate::adapters::code::{BlamedLine, Commit};
use crate::domain::{Entry, EntryKind, Timestamp};
use crate::search::Query;
use crate::store::{SearchFilter, SessionWithSpan, Store, StoreResult, StoredRecord};
use score::{
    Clue, SLACK, SUBJECT_LETTERS_MIN, certainty, commits, names, points, time_clue, writes,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum number of sessions in a result.
const SESSIONS_MAX: usize = 3;
/// Maximum number of records of one search that are compared.
const RECORDS_MAX: usize = 500;
/// Length of the commit id prefix that is searched for.
const ID_DIGITS: usize = 7;
/// Points of a record of a session that may have made the change, if it names the code.
const OF_SESSION: u32 = 3;
/// Minimum length of a line that is searched for verbatim.
const LINE_LETTERS_MIN: usize = 8;
/// Tolerated clock skew.
const CLOCKS: Duration = Duration::from_secs(60);

/// A commit, and the line that it was found by.
pub(crate) struct OriginRequest<'a> {
    pub store: &'a Store,
    pub commit: &'a Commit,
    pub line: Option<&'a BlamedLine>,
    pub now: Timestamp,
    /// The project: its namespace, and its folder as the store has it.
    pub namespace: &'a str,
    pub root: &'a str,
    pub limit: usize,
}

/// A session that may have made the commit.
pub(crate) struct WorkingSession {
    pub held: SessionWithSpan,
    pub certainty: Certainty,
    pub reasons: Vec<String>,
}

/// A record about the line or the commit, with the reasons.
pub(crate) struct RelatedRecord {
    pub hit: SearchHit,
    pub reasons: Vec<String>,
    points: u32,
}

/// Origin of a line or of a commit, the likeliest first.
pub(crate) struct Origin {
    pub sessions: Vec<WorkingSession>,
    pub records: Vec<RelatedRecord>,
    /// Names that the records were searched for.
    pub names: Vec<String>,
}

struct Candidate {
    held: SessionWithSpan,
    clues: Vec<Clue>,
    file: String,
    written: Vec<u32>,
}

impl OriginRequest<'_> {
    pub(crate) async fn run(&self) -> StoreResult<Origin> {
        let mut candidates = Vec::new();
        let times = self.times();
        let (first, last) = (times.iter().min(), times.iter().max());
        if let (Some(first), Some(last)) = (first, last) {
            let slack = i64::try_from(SLACK.as_millis()).unwrap_or(i64::MAX);
            let from = Timestamp(first.0.saturating_sub(slack));
            let mut held = self.store.sessions_between(from, last.after(CLOCKS)).await?;
            held.retain(|it| !is_of_note(&it.session));
            for held in held {
                candidates.extend(self.candidate(held).await?);
            }
        }
        let is_here = |it: &Candidate| {
            it.clues.iter().any(|it| matches!(it, Clue::SameProject | Clue::Committed))
        };
        // Beside one of this project, others wrote a file of that name in their own.
        if candidates.iter().any(is_here) {
            candidates.retain(is_here);
        }
        let of = |it: &Candidate| points(&it.clues).unwrap_or_default();
        candidates.sort_by_key(|it| (std::cmp::Reverse(of(it)), std::cmp::Reverse(it.held.ended)));
        let rival = |at: usize| {
            let others = candidates.iter().enumerate().filter(|(other, _)| *other != at);
            others.map(|(_, it)| of(it)).max()
        };
        let certain: Vec<Certainty> =
            candidates.iter().enumerate().map(|(at, it)| certainty(&it.clues, rival(at))).collect();
        let best = certain.first().copied();
        let mut kept: Vec<(Candidate, Certainty)> = candidates.into_iter().zip(certain).collect();
        // A guess beside something better only distracts.
        kept.retain(|(_, it)| Some(*it) == best || *it != Certainty::Guess);
        kept.truncate(SESSIONS_MAX);
        let names = self.names();
        let records = self.records(&kept, &names).await?;
        let sessions = kept.into_iter().map(|(it, certainty)| WorkingSession {
            reasons: it.clues.iter().map(|clue| clue.reason(&it.file)).collect(),
            held: it.held,
            certainty,
        });
        Ok(Origin { sessions: sessions.collect(), records, names })
    }

    /// The times at which the change may have been made.
    fn times(&self) -> BTreeSet<Timestamp> {
        match self.commit.id {
            Some(_) => {
                [self.commit.authored_at, self.commit.committed_at].into_iter().flatten().collect()
            }
            None => BTreeSet::from([self.now]),
        }
    }

    /// Files of the change, under their present names and those at the commit.
    fn files(&self) -> BTreeSet<&str> {
        let now = self.line.map(|line| line.path.as_str());
        self.commit.files.iter().map(String::as_str).chain(now).collect()
    }

    async fn candidate(&self, held: SessionWithSpan) -> StoreResult<Option<Candidate>> {
        let times = self.times();
        let clues = times.iter().filter_map(|at| time_clue(held.began, held.ended, *at));
        let best = clues.max_by_key(|it| points(&[it.clone(), Clue::SameProject, Clue::Names]));
        let Some(time) = best else { return Ok(None) };
        let mut words: Vec<String> =
            self.files().into_iter().map(|it| base(it).to_owned()).collect();
        let id = self.commit.id.as_deref().and_then(|id| id.get(..ID_DIGITS));
        words.extend(id.map(str::to_owned));
        let subject = &self.commit.subject;
        words.extend((SUBJECT_LETTERS_MIN <= subject.len()).then(|| subject.clone()));
        let entries = self.store.entries_naming(held.session.id, words).await?;
        let mut candidate =
            Candidate { held, clues: Vec::new(), file: String::new(), written: Vec::new() };
        self.look_into(&entries, &mut candidate);
        candidate.clues.push(time);
        let session = &candidate.held.session;
        let cwd = session.cwd.as_ref().map(|cwd| cwd.as_str());
        let is_inside = |cwd: &str| {
            cwd.strip_prefix(self.root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if session.namespace == self.namespace || cwd.is_some_and(is_inside) {
            candidate.clues.push(Clue::SameProject);
        }
        let branches = session.branches.as_ref().map(|it| it.as_str()).unwrap_or_default();
        let is_on = |it: &str| self.commit.branches.iter().any(|branch| branch == it);
        match branches.split(' ').any(is_on) {
            // An uncommitted line is on the branch of whoever works there.
            true if self.commit.id.is_none() => {}
            true => candidate.clues.push(Clue::SameBranch),
            false if branches.is_empty() => {}
            false => candidate.clues.push(Clue::OtherBranch),
        }
        Ok(points(&candidate.clues).is_some().then_some(candidate))
    }

    fn look_into(&self, entries: &[Entry], candidate: &mut Candidate) {
        let last = self.times().last().copied().unwrap_or(self.now).after(CLOCKS);
        let line = self.line.map(|line| line.text.trim()).filter(|it| LINE_LETTERS_MIN <= it.len());
        let (mut clues, mut named) = (BTreeSet::new(), None);
        for entry in entries.iter().filter(|entry| entry.at.is_none_or(|at| at <= last)) {
            let text = entry.text.as_str();
            let tool = entry.tool.as_ref().map_or("", |tool| tool.name.as_str());
            let is_call = entry.kind == EntryKind::ToolCall;
            let id = self.commit.id.as_deref();
            if (is_call || entry.kind == EntryKind::ToolResult)
                && id.is_some_and(|id| commits(text, id, &self.commit.subject))
            {
                clues.insert(Clue::Committed);
            }
            let mut files = self.files().into_iter();
            if let Some(file) = files.find(|file| is_call && writes(tool, text, file)) {
                if line.is_some_and(|line| text.contains(line)) {
                    clues.insert(Clue::WroteLine);
                }
                clues.insert(Clue::Wrote);
                candidate.written.push(entry.ordinal);
                file.clone_into(&mut candidate.file);
            }
            named = named.or_else(|| self.files().into_iter().find(|file| names(text, base(file))));
        }
        if let (Some(file), false) = (named, clues.contains(&Clue::Wrote)) {
            clues.insert(Clue::Names);
            file.clone_into(&mut candidate.file);
        }
        candidate.clues.extend(clues);
    }

    /// Names of the files, and of the code in the line.
    fn names(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        if let Some(line) = self.line {
            all.extend(score::symbols(&line.text));
            all.extend(score::enclosing(&line.above, &line.text));
        }
        all.extend(self.files().into_iter().map(|file| base(file).to_owned()));
        let mut seen = BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        all
    }

    async fn records(
        &self,
        sessions: &[(Candidate, Certainty)],
        names: &[String],
    ) -> StoreResult<Vec<RelatedRecord>> {
        let mut requests: Vec<SearchRequest> = Vec::new();
        for (candidate, _) in sessions {
            let session = Some(candidate.held.session.id.to_string());
            let filter = SearchFilter { session, ..SearchFilter::default() };
            requests.push(SearchRequest { filter, ..SearchRequest::default() });
        }
        let best = sessions.first().map(|(it, _)| it.held.session.namespace.as_str());
        let filter = SearchFilter {
            namespace: Some(best.unwrap_or(self.namespace).to_owned()),
            ..SearchFilter::default()
        };
        let words = names.join(" ");
        if !Query::of(&words).is_empty() {
            requests.push(SearchRequest { words, filter, ..SearchRequest::default() });
        }
        let mut related: BTreeMap<_, RelatedRecord> = BTreeMap::new();
        let mut others: Vec<RelatedRecord> = Vec::new();
        for request in requests {
            let request = SearchRequest { limit: RECORDS_MAX, ..request };
            for hit in search(Some(self.store), &request, Vec::new()).await? {
                let Some(stored) = hit.record() else { continue };
                let session = stored.record.provenance.session;
                let of = sessions.iter().find(|(it, _)| it.held.session.id == session);
                let (reasons, points) = self.relation(stored, names, of.map(|(it, _)| it));
                let id = stored.record.id;
                if points > 0 {
                    related.entry(id).or_insert(RelatedRecord { hit, reasons, points });
                } else if of.is_some_and(|(_, certainty)| *certainty == Certainty::Sure) {
                    let reasons = vec!["said in that session".to_owned()];
                    others.push(RelatedRecord { hit, reasons, points });
                }
            }
        }
        let mut related: Vec<RelatedRecord> = related.into_values().collect();
        if related.is_empty() {
            related = others;
        }
        related.sort_by_key(|it| {
            let state = it.hit.state;
            let is_superseded = state == HitState::Superseded;
            (state.is_void(), is_superseded, std::cmp::Reverse((it.points, it.hit.at())))
        });
        related.truncate(self.limit);
        Ok(related)
    }

    /// Reasons that tie a record to the change, with points; none for another session's record without its names.
    fn relation(
        &self,
        stored: &StoredRecord,
        names: &[String],
        session: Option<&Candidate>,
    ) -> (Vec<String>, u32) {
        let record = &stored.record;
        let claim = record.claim.strings().into_iter().map(|(_, text)| text.to_owned());
        let words = record.evidence.iter().map(|it| it.words.as_str().to_owned());
        let text = claim.chain(words).collect::<Vec<_>>().join("\n");
        let named: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| score::names(&text, name)).collect();
        let (mut reasons, mut points) = (Vec::new(), 0);
        if !named.is_empty() {
            reasons.push(format!("names {}", named.join(", ")));
            points += 3 + u32::try_from(named.len()).unwrap_or(u32::MAX).min(3);
        }
        let Some(session) = session else { return (reasons, points) };
        points += if points > 0 { OF_SESSION } else { 0 };
        let subject = Query::of(&self.commit.subject);
        let (shared, all) = (subject.words_in(&text), subject.words_in(&self.commit.subject));
        if 2 <= shared && all <= shared * 2 {
            reasons.push("says what the commit says".to_owned());
            points += 2;
        }
        let (first, last) = record.provenance.entries;
        if session.written.iter().any(|entry| (first..=last).contains(entry)) {
            reasons.push(format!("said where {} was written", base(&session.file)));
            points += 2;
        }
        (reasons, points)
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
