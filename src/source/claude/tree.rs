//! Which records hang on which, to find the branches that were rewound: a parent with two prompts
//! below it, or two prompts that begin the same session. A few dozen bytes a record.

use crate::source::marks::NameMap;

/// No node.
const NONE: u32 = u32::MAX;
/// Set in the names of beginnings, which no node's number has.
const BEGINNING: u64 = 1 << 63;

/// A record's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    line: u32,
    /// The record it follows.
    parent: u32,
    /// The nearest message that it follows, past progress, hooks and attachments.
    message: u32,
    prompt: bool,
    speaks: bool,
    sidechain: bool,
    /// What it begins, for a prompt that begins a tree and may have taken another's place.
    beginning: Option<u64>,
}

impl Node {
    pub(super) fn new(line: u32, prompt: bool, speaks: bool, sidechain: bool) -> Node {
        Node { line, parent: NONE, message: NONE, prompt, speaks, sidechain, beginning: None }
    }

    /// The same as the first prompt of what `name` names. Of two such prompts, one was rewound.
    pub(super) fn beginning(self, name: Option<u64>) -> Node {
        Node { beginning: name, ..self }
    }

    /// Where a prompt stands: two in one place are a fork.
    fn place(&self) -> Option<u64> {
        match self.message {
            NONE if self.parent == NONE => self.beginning.map(|name| name | BEGINNING),
            NONE => None,
            message => Some(u64::from(message)),
        }
    }
}

/// The records of one file. A parent always stands before its children.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    by_name: NameMap<u32>,
}

impl Tree {
    /// Adds a record with its name and what it says of its parent: nothing, "I begin a tree", or
    /// a name. A record whose parent is missing follows the previous one in the file.
    pub(super) fn push(&mut self, name: Option<u64>, mut node: Node, parent: Option<Option<u64>>) {
        let at = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        if at == NONE {
            return;
        }
        let previous = at.checked_sub(1).unwrap_or(NONE);
        node.parent = match parent {
            Some(None) => NONE,
            Some(Some(name)) => self.by_name.get(&name).copied().unwrap_or(previous),
            None => previous,
        };
        node.message = match self.get(node.parent) {
            Some(parent) if parent.speaks && !parent.sidechain => node.parent,
            // What a first prompt hangs on: the hook that began the session.
            Some(parent) if parent.message == NONE => node.parent,
            Some(parent) => parent.message,
            None => NONE,
        };
        self.nodes.push(node);
        if let Some(name) = name {
            self.by_name.insert(name, at);
        }
    }

    fn get(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    /// The lines of every record that a rewind left behind.
    pub(super) fn abandoned(&self) -> Vec<u32> {
        let forked = self.forked();
        if forked.is_empty() {
            return Vec::new();
        }
        let (active, linked) = (self.active(), self.linked());
        let is_linked = |at: u32| linked.get(at as usize).copied().unwrap_or(false);
        let on = |at: u32| active.get(at as usize).copied().unwrap_or(false);
        let mut left = vec![false; self.nodes.len()];
        for prompts in forked {
            // Where the last message hangs on none of them, the person went on with the last.
            let kept = prompts.iter().rev().find(|at| on(**at)).or(prompts.last()).copied();
            let rewound = |at: &u32| Some(*at) != kept && is_linked(*at);
            for prompt in prompts.into_iter().filter(rewound) {
                if let Some(left) = left.get_mut(prompt as usize) {
                    *left = true;
                }
            }
        }
        let mut lines = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let below = left.get(node.parent as usize).copied().unwrap_or(false);
            if let Some(left) = left.get_mut(at) {
                *left |= below;
                lines.extend(left.then_some(node.line));
            }
        }
        lines
    }

    /// Prompts that follow the same message, where there are two or more.
    fn forked(&self) -> Vec<Vec<u32>> {
        let mut below: NameMap<Vec<u32>> = NameMap::default();
        let mut parents = Vec::new();
        for (at, node) in (0u32..).zip(&self.nodes) {
            if let Some(place) = node.place().filter(|_| node.prompt && !node.sidechain) {
                let prompts = below.entry(place).or_default();
                prompts.push(at);
                if prompts.len() == 2 {
                    parents.push(place);
                }
            }
        }
        parents.into_iter().filter_map(|parent| below.remove(&parent)).collect()
    }

    /// Which records hang on something, or have a message that hangs on them. In a file that links
    /// nothing every prompt seems to begin a tree, and none was rewound.
    fn linked(&self) -> Vec<bool> {
        let mut linked: Vec<bool> = self.nodes.iter().map(|node| node.parent != NONE).collect();
        for node in self.nodes.iter().filter(|node| node.speaks) {
            if let Some(linked) = linked.get_mut(node.parent as usize) {
                *linked = true;
            }
        }
        linked
    }

    /// Which records are on the way from the last message to its root.
    fn active(&self) -> Vec<bool> {
        let mut active = vec![false; self.nodes.len()];
        let last = self.nodes.iter().rposition(|node| node.speaks && !node.sidechain);
        let mut at = last.and_then(|last| u32::try_from(last).ok()).unwrap_or(NONE);
        for _ in 0..self.nodes.len() {
            let Some(node) = self.get(at) else { break };
            if let Some(active) = active.get_mut(at as usize) {
                *active = true;
            }
            at = node.parent;
        }
        active
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::marks::name_of;

    /// Records as `name<parent`, prompts in capitals, assistants in small letters, `.` for others;
    /// `-` begins a tree, `+` one that may take another's place, `?` is missing.
    #[track_caller]
    fn check(records: &str, expected: &[u32]) {
        let mut tree = Tree::default();
        for (line, record) in (1..).zip(records.split(' ')) {
            let (name, parent) = record.split_once('<').unwrap();
            let prompt = name.chars().all(char::is_uppercase);
            let node = Node::new(line, prompt, !name.starts_with('.'), false);
            let node = node.beginning((parent == "+").then_some(1));
            let parent = (!matches!(parent, "-" | "+")).then(|| name_of(parent));
            tree.push(Some(name_of(name)), node, Some(parent));
        }
        assert_eq!(tree.abandoned(), expected);
    }

    #[test]
    fn parallel_calls_are_no_fork() {
        check("P<- a<P r<a b<a s<b Q<s", &[]);
    }

    #[test]
    fn what_hangs_on_a_rewound_prompt_is_left() {
        check("P<- a<P Q<a b<Q R<a c<R", &[3, 4]);
    }

    #[test]
    fn bookkeeping_between_does_not_hide_a_fork() {
        check("P<- a<P .h<a Q<.h b<Q .i<a R<.i c<R", &[4, 5]);
    }

    #[test]
    fn the_first_prompt_may_be_rewound_too() {
        check(".s<- P<.s a<P Q<.s b<Q", &[2, 3]);
    }

    #[test]
    fn a_second_tree_is_no_fork() {
        check(".s<- P<.s a<P .t<- Q<.t b<Q", &[]);
        check("P<- a<P Q<- b<Q", &[]);
    }

    #[test]
    fn of_two_beginnings_the_one_without_the_last_message_is_left() {
        check("P<+ a<P Q<+ b<Q", &[1, 2]);
        check("P<+ a<P Q<+ b<Q R<a c<R", &[3, 4]);
        check("P<+ a<P Q<+", &[1, 2]);
        check("P<+ a<P Q<+ b<Q R<+ c<R", &[1, 2, 3, 4]);
    }

    #[test]
    fn a_file_without_links_has_no_rewinds() {
        check("P<+ a<- Q<+ b<-", &[]);
    }

    #[test]
    fn a_missing_parent_is_the_previous_record() {
        check("P<- a<P Q<? b<Q", &[]);
    }
}
