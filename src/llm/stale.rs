//! Explanation of a stale request: the nearest recorded request and the differences from it.

use super::cassette_file::RecordedRequest;
use crate::domain::{OutputMode, Role};
use crate::text::diff::difference;

/// Explanation for an empty cassette.
pub(super) const EMPTY: &str = "the cassette is empty; record one";

/// Parts of a request with their weights for similarity. The slice weighs most.
fn parts(question: &RecordedRequest) -> [(&'static str, u32, String); 8] {
    let text = |role: Role, at: usize| {
        let mut messages = question.messages.iter().filter(|it| it.role == role);
        messages.nth(at).map(|it| it.content.text()).unwrap_or_default()
    };
    let (mut system, mut user) = (0, 0);
    let later = question.messages.iter().filter(|it| match it.role {
        Role::System => std::mem::replace(&mut system, 1) > 0,
        Role::User => std::mem::replace(&mut user, 1) > 0,
        Role::Assistant => true,
    });
    let later: Vec<String> = later.map(|it| it.content.text()).collect();
    let schema = question.schema.map(|it| it.to_string()).unwrap_or_default();
    [
        ("model", 8, question.model.clone()),
        ("rung", 2, rung_name(question.rung).to_owned()),
        ("prompt", 16, text(Role::System, 0)),
        ("slice", 64, text(Role::User, 0)),
        ("later messages", 4, later.join("\u{0}")),
        ("schema", 1, schema),
        ("settings", 1, settings(question)),
        ("generation", 1, question.generation.to_string()),
    ]
}

fn rung_name(rung: Option<OutputMode>) -> &'static str {
    rung.map_or("unknown", OutputMode::name)
}

fn settings(question: &RecordedRequest) -> String {
    let tokens = question.reply_tokens_max;
    match question.temperature {
        Some(temperature) => format!("reply_tokens_max {tokens}, temperature {temperature}"),
        None => format!("reply_tokens_max {tokens}, no temperature"),
    }
}

/// The recorded request most similar to `asked`, of pairs of file name and request; the first among equals.
pub(super) fn nearest<'a>(
    recorded: impl Iterator<Item = (&'a str, &'a RecordedRequest)>,
    asked: &RecordedRequest,
) -> Option<(&'a str, &'a RecordedRequest)> {
    let wanted = parts(asked);
    let nearness = |question: &RecordedRequest| -> u32 {
        let same = parts(question).into_iter().zip(&wanted).filter(|(one, other)| one.2 == other.2);
        same.map(|((_, weight, _), _)| weight).sum()
    };
    let scored = recorded.map(|it| (nearness(it.1), it));
    let best = scored.reduce(|best, it| if best.0 < it.0 { it } else { best });
    best.map(|(_, it)| it)
}

fn differing(recorded: &RecordedRequest, asked: &RecordedRequest) -> Vec<&'static str> {
    let pairs = parts(recorded).into_iter().zip(parts(asked));
    let names = pairs.filter(|(one, other)| one.2 != other.2).map(|(one, _)| one.0);
    let names: Vec<&str> = names.collect();
    if names.is_empty() { vec!["the digest itself; was the file edited by hand?"] } else { names }
}

/// One sentence, without conversation text.
pub(super) fn sentence(nearest: (&str, &RecordedRequest), asked: &RecordedRequest) -> String {
    let (case, recorded) = nearest;
    let differences = differing(recorded, asked).into_iter().map(|name| match name {
        "model" => format!("model (kept {}, asked {})", recorded.model, asked.model),
        "rung" => {
            let (kept, asked) = (rung_name(recorded.rung), rung_name(asked.rung));
            format!("rung (kept {kept}, asked {asked})")
        }
        name => name.to_owned(),
    });
    let differences: Vec<String> = differences.collect();
    format!("no answer kept; nearest is case {case}, which differs in: {}", differences.join(", "))
}

/// A sentence, then the model, the settings and the message lines that differ, which contain conversation text.
pub(super) fn page(nearest: (&str, &RecordedRequest), asked: &RecordedRequest) -> String {
    let (case, recorded) = nearest;
    let names = differing(recorded, asked).join(", ");
    let mut page = format!("the nearest recording, {case}, differs in: {names}\n");
    for ((name, _, before), (_, _, after)) in parts(recorded).into_iter().zip(parts(asked)) {
        if ["model", "rung", "settings"].contains(&name) && before != after {
            page.push_str(&format!("{name}:\n- {before}\n+ {after}\n"));
        }
    }
    for at in 0..recorded.messages.len().max(asked.messages.len()) {
        let (old, new) = (recorded.messages.get(at), asked.messages.get(at));
        let before = old.map(|message| message.content.text()).unwrap_or_default();
        let after = new.map(|message| message.content.text()).unwrap_or_default();
        let role = new.or(old).map(|it| it.role);
        if let Some(role) = role.filter(|_| before != after) {
            page.push_str(&format!("{} message {}:\n", role.name(), at + 1));
            page.push_str(&difference(&with_fence_of(&after, &before), &after));
        }
    }
    page.trim_end().to_owned()
}

/// Replaces the fence of `text` by that of `other`: a fence is a digest, so it differs whenever the content does.
fn with_fence_of(other: &str, text: &str) -> String {
    let fences = fence(text).zip(fence(other));
    fences.map_or_else(|| text.to_owned(), |(own, theirs)| text.replace(own, theirs))
}

fn fence(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<transcript-")?;
    rest.split_once('>').map(|(fence, _)| fence).filter(|fence| !fence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_alone_is_no_difference() {
        let old = "Between `transcript-1a`.\n<transcript-1a>\n[User] x\n</transcript-1a>";
        let new = old.replace("1a", "2b");
        assert_eq!(with_fence_of(&new, old), new);
        assert_eq!(with_fence_of("no slice", old), old);
        assert_eq!(with_fence_of(&new, "no slice"), "no slice");
    }
}
