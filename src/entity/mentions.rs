//! How often names were mentioned.

use super::names;
use crate::privacy::Redacted;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Words that are counted; what is new beyond that is left out, so that a long text cannot take all
/// memory. A million words of prose have a tenth of that.
pub const NAMES_MAX: usize = 65_536;

/// Counts names over many texts. A word of which no sighting was sure is counted, but no name yet.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    seen: HashMap<Box<str>, Mention>,
}

#[derive(Clone, Debug)]
struct Mention {
    count: u64,
    /// How many words were known when it came.
    rank: usize,
    is_sure: bool,
}

impl Mentions {
    /// Counts the names of one more text.
    pub fn read(&mut self, text: &Redacted) {
        for name in names(text) {
            if let Some(mention) = self.seen.get_mut(name.text) {
                mention.count += 1;
                mention.is_sure |= name.is_sure;
            } else if self.seen.len() < NAMES_MAX {
                let mention = Mention { count: 1, rank: self.seen.len(), is_sure: name.is_sure };
                self.seen.insert(name.text.into(), mention);
            }
        }
    }

    /// Names and how often they were mentioned: the most mentioned first, of equals the one that
    /// came first.
    pub fn ranked(&self) -> Vec<(&str, u64)> {
        let mut sure: Vec<_> = self.seen.iter().filter(|(_, mention)| mention.is_sure).collect();
        sure.sort_unstable_by_key(|(_, mention)| (Reverse(mention.count), mention.rank));
        sure.into_iter().map(|(name, mention)| (&**name, mention.count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Gate;

    #[track_caller]
    fn check(texts: &[&str], expected: &[(&str, u64)]) {
        let mut mentions = Mentions::default();
        texts.iter().for_each(|text| mentions.read(&Gate::new(&[]).redact(text)));
        assert_eq!(mentions.ranked(), expected);
    }

    #[test]
    fn a_word_that_is_a_name_once_is_one_wherever_it_stood() {
        check(&["Ann works at Acme.", "I met Ann."], &[("Ann", 2), ("Acme", 1)]);
        check(&["Kubernetes is slow. Today we scale Kubernetes. Today."], &[("Kubernetes", 2)]);
    }

    #[test]
    fn of_equals_the_first_comes_first() {
        check(
            &["we use Redis, Nginx, Redis, Nginx and EC2"],
            &[("Redis", 2), ("Nginx", 2), ("EC2", 1)],
        );
    }

    #[test]
    fn what_is_new_beyond_the_bound_is_left_out() {
        let many: String = (0..NAMES_MAX + 5).map(|n| format!("x N{n:06} ")).collect();
        let mut mentions = Mentions::default();
        mentions.read(&Gate::new(&[]).redact(&many));
        assert_eq!(mentions.ranked().len(), NAMES_MAX);
    }
}
