//! A rendered file before it is text.

use super::document::{Document, Part, Shape};
use super::edit::NewEntry;
use super::kind::{Kind, footer, hint, table_head};
use super::tag::{self, Category};
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct Page {
    pub(super) path: String,
    pub(super) head: Option<String>,
    pub(super) sections: Vec<(&'static str, Vec<NewEntry>)>,
    pub(super) footer: Option<String>,
    /// Hash of what it is rendered from; `None` if it is always rendered.
    pub(super) inputs: Option<u64>,
    /// The base was rendered from the same, and stays.
    pub(super) is_kept: bool,
}

impl Page {
    pub(super) fn new(path: impl Into<String>) -> Page {
        let path = path.into();
        let sections = Kind::of_path(&path).sections();
        let sections = sections.iter().map(|section| (*section, Vec::new())).collect();
        Page { path, head: None, sections, footer: None, inputs: None, is_kept: false }
    }

    pub(super) fn push(&mut self, section: &'static str, entry: NewEntry) {
        match self.sections.iter_mut().find(|(name, _)| *name == section) {
            Some((_, entries)) => entries.push(entry),
            None => self.sections.push((section, vec![entry])),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_kept && self.sections.iter().all(|(_, entries)| entries.is_empty())
    }

    /// Renders the file; returns `before` if only the date at the end would change.
    pub(super) fn text(&self, before: Option<&Arc<str>>, today: &str) -> Arc<str> {
        let kind = Kind::of_path(&self.path);
        // A footer of its own has no date.
        let has_own_footer = self.footer.is_some();
        if let Some(before) = before.filter(|_| self.is_kept) {
            return Arc::clone(before);
        }
        if let Some(before) = before
            && let Some(day) = if has_own_footer { Some("") } else { last_day(kind, before) }
            && *self.write(kind, day) == **before
        {
            return Arc::clone(before);
        }
        self.write(kind, today).into()
    }

    fn write(&self, kind: Kind, day: &str) -> String {
        let mut text = match &self.head {
            Some(head) => head.clone(),
            None => format!("# {}\n", kind.title().unwrap_or_default()),
        };
        // People fill the empty headings of this file; in others they are left out, unless the whole file is empty.
        let keeps_empty = kind == Kind::ActiveContext || self.is_empty();
        for (section, entries) in &self.sections {
            if entries.is_empty() && !keeps_empty {
                continue;
            }
            text.push_str(&format!("\n## {section}\n"));
            if entries.is_empty() {
                text.push_str(&hint(kind, section));
            }
            let rows = entries.first().is_some_and(|entry| entry.shape == Shape::Row);
            if rows {
                text.push_str(table_head(section));
            }
            entries.iter().for_each(|entry| text.push_str(&entry.lines));
        }
        if let Some(footer) = self.footer.clone().or_else(|| footer(kind, day)) {
            text.push_str(&format!("\n---\n{footer}\n"));
        }
        text
    }
}

/// Date in the last line of a rendered file.
fn last_day(kind: Kind, text: &str) -> Option<&str> {
    if kind.footer().is_none() {
        return Some("");
    }
    let (document, _) = Document::parse(kind, text);
    let Some(footer) = document.first(Part::Footer) else { return Some("") };
    let line = document.raw(footer).lines().rfind(|line| line.starts_with('*'))?;
    line.trim_matches('*').strip_prefix(kind.footer()?)
}

pub(super) fn entry(
    shape: Shape,
    words: &str,
    category: Option<Category>,
    tag: Option<&str>,
) -> NewEntry {
    let mark = match shape {
        Shape::Bullet => "- ",
        Shape::Task { done: false } => "- [ ] ",
        Shape::Task { done: true } => "- [x] ",
        Shape::Paragraph | Shape::Row | Shape::Code => "",
    };
    if let (Shape::Row, Some(tag)) = (shape, tag) {
        return NewEntry { shape, lines: format!("{words} {}\n", tag::tag_line(tag)) };
    }
    let category = category.map(|it| tag::category_line(it) + "\n").unwrap_or_default();
    let tag = tag.map(|it| tag::tag_line(it) + "\n").unwrap_or_default();
    NewEntry { shape, lines: [mark, words, "\n", &category, &tag].concat() }
}
