//! Why no cassette answers a request: which kept question is nearest, and in what it differs. Says
//! names and counts, no words.

use super::cassette_file::{Question, schema_digest};
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

    /// How much they have in common; the slice weighs most, for the question is about it.
    fn nearness(&self, other: &Outline) -> u32 {
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
    fn differences(&self, asked: &Outline) -> Vec<String> {
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
    // The first of equals, so that the sentence does not depend on chance.
    let nearest = kept.fold(None::<(u32, &str, &Outline)>, |best, (case, outline)| {
        let nearness = outline.nearness(asked);
        match best {
            Some((most, _, _)) if nearness <= most => best,
            Some(_) | None => Some((nearness, case, outline)),
        }
    });
    match nearest {
        None => "the cassette is empty; record one".to_owned(),
        Some((_, case, outline)) => {
            let differences = outline.differences(asked).join(", ");
            format!("no answer kept; nearest is case {case}, which differs in: {differences}")
        }
    }
}
