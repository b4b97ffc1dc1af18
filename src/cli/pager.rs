//! Pager for output that does not fit on the terminal.

use crate::text::terminal;
use anstream::ColorChoice;
use std::cell::RefCell;
use std::io::{self, Write};
use std::process::{Command, Stdio};

thread_local! {
    /// Buffered output of a command that may be long.
    static PAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

pub(super) fn begin() {
    PAGE.set(Some(String::new()));
}

pub(super) fn take() -> String {
    PAGE.take().unwrap_or_default()
}

/// Appends a line to the buffer; false if output is not buffered.
pub(super) fn hold(text: &str) -> bool {
    PAGE.with_borrow_mut(|page| {
        let Some(page) = page else { return false };
        page.push_str(text);
        page.push('\n');
        true
    })
}

/// Shows a text in the pager; false if there is none.
pub(super) fn show(text: &str) -> io::Result<bool> {
    let named = std::env::var_os("PAGER").and_then(|pager| pager.into_string().ok());
    let named = named.filter(|pager| !pager.trim().is_empty());
    let pager = named.unwrap_or_else(|| "less -FRX".to_owned());
    let started = Command::new("sh").args(["-c", &pager]).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = started else { return Ok(false) };
    if let Some(mut stdin) = child.stdin.take() {
        let mut text = terminal::shown(text);
        if anstream::AutoStream::choice(&io::stdout()) == ColorChoice::Never {
            text = anstream::adapter::strip_str(&text).to_string();
        }
        // Fails if the user quits the pager early.
        let _ = stdin.write_all(text.as_bytes());
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_while_there_is_a_page_and_in_their_order() {
        assert!(!hold("before"));
        begin();
        assert!(hold("one") && hold("two"));
        assert_eq!(take(), "one\ntwo\n");
        assert!(!hold("after"));
    }
}
