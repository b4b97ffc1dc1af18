//! Why no cassette answers a request: which kept question is nearest, and in what it differs. Says
//! names and counts; words only where somebody asks for them, who has the conversation at hand.

use super::cassette_file::{Question, schema_digest};
use super::difference::difference;
use crate::domain::{Digest, Request, Role, Rung};

/// What a question is made of, by digest, so that hundreds are compared at once.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    model: String,
    rung: Option<Rung>,
    schema: Option<Digest>,
    settings: String,
    generation: u32,
    /// The system message.
    prompt: Option<Digest>,
    /// The first message of the user.
    slice: Option<Digest>,
    /// What follows: earlier answers and complaints.
    later: Vec<Digest>,
}

impl Outline {
    /// Of a kept question.
    pub(super) fn of_question(question: &Question) -> Outline {
        let messages = question.messages.iter();
        let messages = messages.map(|m| (m.role, Digest::of(&[&m.content.text()])));
        let settings = (question.reply_tokens_max, question.temperature);
        Outline {
            model: question.model.clone(),
            rung: question.rung,
            schema: question.schema,
            generation: question.generation,
            ..Outline::of_messages(messages, settings)
        }
    }

    /// Of a request.
    pub(super) fn of_request(request: &Request) -> Outline {
        let messages = request.messages.iter();
        let messages = messages.map(|m| (m.role, Digest::of(&[m.content.as_str()])));
        let settings = (request.reply_tokens_max, request.temperature);
        Outline {
            model: request.model.clone(),
            rung: Some(request.rung),
            schema: Some(schema_digest(&request.tool)),
            generation: request.generation,
            ..Outline::of_messages(messages, settings)
        }
    }

    /// The model's name, empty where a hand-written question names none.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// How it was asked, if that is known.
    pub(super) fn rung(&self) -> Option<Rung> {
        self.rung
    }

    fn of_messages(
        messages: impl Iterator<Item = (Role, Digest)>,
        settings: (u32, Option<f32>),
    ) -> Outline {
        let mut outline = Outline {
            model: String::new(),
            rung: None,
            schema: None,
            settings: format!("{settings:?}"),
            generation: 0,
            prompt: None,
            slice: None,
            later: Vec::new(),
        };
        for (role, digest) in messages {
            match role {
                Role::System if outline.prompt.is_none() => outline.prompt = Some(digest),
                Role::User if outline.slice.is_none() => outline.slice = Some(digest),
                Role::System | Role::User | Role::Assistant => outline.later.push(digest),
            }
        }
        outline
    }

    /// Whether the one was asked in the course of the other: by the same model, with the same prompt, about the same.
    pub(super) fn is_of_talk(&self, first: &Outline) -> bool {
        (&self.model, self.prompt, self.slice) == (&first.model, first.prompt, first.slice)
    }

    /// How far into a talk it was asked, and how often anew.
    pub(super) fn at(&self) -> (usize, u32) {
        (self.later.len(), self.generation)
    }

    /// How much they have in common; the slice weighs most, for the question is about it.
    pub(super) fn nearness(&self, other: &Outline) -> u32 {
        let parts = [
            (64, self.slice == other.slice),
            (16, self.prompt == other.prompt),
            (8, self.model == other.model),
            (4, self.later == other.later),
            (2, self.rung == other.rung),
            (1, self.schema == other.schema),
            (1, self.settings == other.settings),
            (1, self.generation == other.generation),
        ];
        parts.iter().filter(|(_, same)| *same).map(|(weight, _)| weight).sum()
    }

    /// In what `asked` differs from this.
    pub(super) fn differences(&self, asked: &Outline) -> Vec<String> {
        let rung = |rung: Option<Rung>| rung.map_or("unknown", Rung::name);
        let mut found = Vec::new();
        if self.model != asked.model {
            found.push(format!("model (kept {}, asked {})", self.model, asked.model));
        }
        if self.rung != asked.rung {
            found.push(format!("rung (kept {}, asked {})", rung(self.rung), rung(asked.rung)));
        }
        let changed = [
            ("prompt", self.prompt != asked.prompt),
            ("slice", self.slice != asked.slice),
            ("later messages", self.later != asked.later),
            ("schema", self.schema != asked.schema),
            ("settings", self.settings != asked.settings),
            ("generation", self.generation != asked.generation),
        ];
        let changed = changed.iter().filter(|(_, differs)| *differs);
        found.extend(changed.map(|(name, _)| (*name).to_owned()));
        if found.is_empty() {
            found.push("the digest itself; was the file edited by hand?".to_owned());
        }
        found
    }
}

/// The sentence: which case is nearest to `asked` and in what it differs.
pub(super) fn why_stale<'a>(
    kept: impl Iterator<Item = (&'a str, &'a Outline)>,
    asked: &Outline,
) -> String {
    match nearest(kept.map(|(case, outline)| (outline, (case, outline))), asked) {
        None => EMPTY.to_owned(),
        Some((case, outline)) => {
            let differences = outline.differences(asked).join(", ");
            format!("no answer kept; nearest is case {case}, which differs in: {differences}")
        }
    }
}

/// What is said of a cassette without answers.
pub(super) const EMPTY: &str = "the cassette is empty; record one";

/// What is nearest to `asked`; the first of equals, so that it does not depend on chance.
pub(super) fn nearest<'a, T>(
    kept: impl Iterator<Item = (&'a Outline, T)>,
    asked: &Outline,
) -> Option<T> {
    let nearest = kept.fold(None::<(u32, T)>, |best, (outline, it)| {
        let nearness = outline.nearness(asked);
        match best {
            Some((most, _)) if nearness <= most => best,
            Some(_) | None => Some((nearness, it)),
        }
    });
    nearest.map(|(_, it)| it)
}

/// In what `asked` differs from `kept`, of which these are the outlines, for who has the conversation at hand: a
/// sentence, then the model, the settings and the messages that differ, in the lines that do.
pub(super) fn page(
    (case, kept, outline): (&str, &Question, &Outline),
    (asked, asks): (&Request, &Outline),
) -> String {
    let names: Vec<String> = outline
        .differences(asks)
        .iter()
        .map(|it| it.split(" (").next().unwrap_or_default().to_owned())
        .collect();
    let mut page = format!("the nearest recording, {case}, differs in: {}\n", names.join(", "));
    let mut changed = |what: &str, before: String, after: String| {
        if before != after {
            page.push_str(&format!("{what}:\n- {before}\n+ {after}\n"));
        }
    };
    let rung = |rung: Option<Rung>| rung.map_or("unknown", Rung::name).to_owned();
    changed("model", kept.model.clone(), asked.model.clone());
    changed("rung", rung(kept.rung), rung(Some(asked.rung)));
    changed("settings", settings_of(kept.reply_tokens_max, kept.temperature), {
        settings_of(asked.reply_tokens_max, asked.temperature)
    });
    for at in 0..kept.messages.len().max(asked.messages.len()) {
        let (old, new) = (kept.messages.get(at), asked.messages.get(at));
        let before = old.map(|message| message.content.text()).unwrap_or_default();
        let after = new.map(|message| message.content.as_str()).unwrap_or_default();
        let role = new.map(|it| it.role).or(old.map(|it| it.role));
        if before != after
            && let Some(role) = role
        {
            page.push_str(&format!("{} message {}:\n", role.name(), at + 1));
            page.push_str(&difference(&with_fence_of(after, &before), after));
        }
    }
    page
}

fn settings_of(tokens: u32, temperature: Option<f32>) -> String {
    match temperature {
        Some(temperature) => format!("reply_tokens_max {tokens}, temperature {temperature}"),
        None => format!("reply_tokens_max {tokens}, no temperature"),
    }
}

/// `text` with the fence of another in the place of its own: a fence is a digest of what is inside, so it
/// differs wherever anything does and tells nobody anything.
fn with_fence_of(other: &str, text: &str) -> String {
    match (fence(text), fence(other)) {
        (Some(own), Some(theirs)) => text.replace(own, theirs),
        (Some(_), None) | (None, Some(_) | None) => text.to_owned(),
    }
}

/// The fence around a slice in a message, if there is one.
pub(super) fn fence(text: &str) -> Option<&str> {
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
