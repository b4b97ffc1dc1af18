//! One prompt file: front matter and template.

use crate::domain::Digest;
use std::collections::BTreeSet;

/// A prompt file that cannot be used. Says which, and what is wrong with it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("prompt `{file}`: {detail}")]
pub struct PromptError {
    /// The file's id.
    pub file: &'static str,
    /// What is wrong, for a person.
    pub detail: String,
}

impl PromptError {
    pub(super) fn new(file: &'static str, detail: impl Into<String>) -> PromptError {
        PromptError { file, detail: detail.into() }
    }
}

/// A file that was taken apart.
pub(super) struct File<'a> {
    pub(super) id: &'static str,
    pub(super) version: u32,
    pub(super) inputs: BTreeSet<&'a str>,
    pub(super) template: &'a str,
    digest: Digest,
}

impl<'a> File<'a> {
    /// Takes `text` apart; its front matter must name `id`.
    pub(super) fn read(id: &'static str, text: &'a str) -> Result<File<'a>, PromptError> {
        let wrong = |detail: String| PromptError::new(id, detail);
        let (front, template) = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .ok_or_else(|| wrong("expected front matter between two `---` lines".to_owned()))?;
        let (mut named, mut version, mut inputs) = (None, None, None);
        for line in front.lines() {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            match (key.trim(), value.trim()) {
                ("id", value) => named = Some(value),
                ("version", value) => version = value.parse::<u32>().ok(),
                ("inputs", value) => inputs = list(value),
                (key, _) => {
                    return Err(wrong(format!("unknown key `{key}`; id, version or inputs")));
                }
            }
        }
        if named != Some(id) {
            return Err(wrong(format!("expected `id: {id}`")));
        }
        if template.contains(|c: char| c.is_control() && c != '\n') {
            return Err(wrong("control characters in the template".to_owned()));
        }
        Ok(File {
            id,
            version: version.ok_or_else(|| wrong("expected `version: N`".to_owned()))?,
            inputs: inputs.ok_or_else(|| wrong("expected `inputs: [a, b]`".to_owned()))?,
            template,
            digest: Digest::of(&[text]),
        })
    }

    /// `id version digest`.
    pub(super) fn line(&self) -> String {
        format!("{} {} {}", self.id, self.version, self.digest)
    }
}

/// A file that is compiled in, with another version in its front matter.
pub(super) fn with_version(text: &str, version: u32) -> String {
    let Some((front, template)) = text.split_once("\n---\n") else { return text.to_owned() };
    let line = |line: &str| match line.starts_with("version:") {
        true => format!("version: {version}"),
        false => line.to_owned(),
    };
    let front: Vec<String> = front.split('\n').map(line).collect();
    format!("{}\n---\n{template}", front.join("\n"))
}

fn list(value: &str) -> Option<BTreeSet<&str>> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.split(',').map(str::trim).filter(|name| !name.is_empty()).collect())
}
