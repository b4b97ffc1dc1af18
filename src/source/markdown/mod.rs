//! Conversations written down as text: Markdown of aider and SpecStory, and plain `role: words`.

mod toolbox;
pub(super) mod aider;
pub(super) mod fence;
pub(super) mod plain;
pub(super) mod specstory;
