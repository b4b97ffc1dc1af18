//! What was said about a slice whatever it was asked with, so that answers to another prompt can be read and compared.
//! No run takes its answers from here: a changed prompt is stale until somebody asks with it.

use super::cassette::{Cassette, Held};
use super::cassette_file::{Origin, Question};
use super::stale::{Outline, fence};
use crate::domain::{EMBEDDING, Reply, Request, Role, Rung};

/// A recorded talk about a slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptTalk {
    /// How it was asked first, if that is known.
    pub rung: Option<Rung>,
    /// What was answered, in the order in which it was asked.
    pub replies: Vec<(Reply, Origin)>,
}

impl Cassette {
    /// The recorded talk about the slice that `first` asks about that is most like it; like the one that `to` holds, if
    /// that holds one. The model weighs more than the prompt.
    pub fn talk_like(&self, first: &Request, to: &Cassette) -> Option<KeptTalk> {
        let slice = slice_of_request(first);
        let asked = Outline::of_request(first);
        let asked = to.opening(&slice, &asked).map_or(asked, |it| it.outline.clone());
        let opening = self.opening(&slice, &asked)?;
        let of_talk = |it: &&Held| it.outline.is_of_talk(&opening.outline);
        let mut talk: Vec<&Held> = self.held.values().filter(of_talk).collect();
        // On another rung or with another schema the same was asked in another way.
        talk.retain(|it| {
            let (one, other) = (&it.question, &opening.question);
            it.outline.at() != opening.outline.at() || one.digest == other.digest
        });
        talk.sort_by_key(|it| it.outline.at());
        let replies = talk.into_iter().map(|it| (it.reply.clone(), it.origin)).collect();
        Some(KeptTalk { rung: opening.outline.rung(), replies })
    }

    /// The first question of the talk about a slice that is most like `asked`.
    fn opening(&self, slice: &str, asked: &Outline) -> Option<&Held> {
        let all = self.held.values().filter(|it| it.question.tool != EMBEDDING);
        let about = all.filter(|it| {
            it.outline.at() == (0, 0) && slice_of(&it.question).as_deref() == Some(slice)
        });
        // The first of equals, so that it does not depend on chance.
        about.fold(None, |best: Option<&Held>, it| match best {
            Some(best) if weight(&it.outline, asked) <= weight(&best.outline, asked) => Some(best),
            Some(_) | None => Some(it),
        })
    }
}

fn weight(outline: &Outline, asked: &Outline) -> (bool, u32) {
    (outline.model() == asked.model(), outline.nearness(asked))
}

fn slice_of_request(request: &Request) -> String {
    let first = request.messages.iter().find(|it| it.role == Role::User);
    inside(first.map(|it| it.content.as_str()).unwrap_or_default()).to_owned()
}

fn slice_of(question: &Question) -> Option<String> {
    let first = question.messages.iter().find(|it| it.role == Role::User)?;
    Some(inside(&first.content.text()).to_owned())
}

/// What stands within the fence of a slice; all of it where a prompt has none.
fn inside(text: &str) -> &str {
    let within = || {
        let fence = fence(text)?;
        let (_, rest) = text.split_once(&format!("<transcript-{fence}>"))?;
        rest.rsplit_once(&format!("</transcript-{fence}>")).map(|(slice, _)| slice)
    };
    within().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_the_same_whatever_stands_around_its_fence() {
        let one = "Read:\n<transcript-1a>\n[User] x\n</transcript-1a>\nNow.";
        let other = "<transcript-2b>\n[User] x\n</transcript-2b>";
        assert_eq!(inside(one), inside(other));
        assert_ne!(inside(one), inside(&other.replace('x', "y")));
        assert_eq!(inside("no fence"), "no fence");
    }
}
