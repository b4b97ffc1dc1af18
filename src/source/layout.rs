//! How a file of JSON is laid out: one value a line, or one value over many lines. Told by where the
//! first value ends, since both kinds of files have names of all sorts.

use super::cutter::{Cut, Cutter};
use super::emit::Emit;
use super::lines::Lines;
use crate::domain::{LINE_BYTES_MAX, Severity};
use std::io::{self, Read, Seek};

/// How a file is laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layout {
    /// One value a line.
    Lines,
    /// One array.
    Array,
    /// One value that is no array.
    Object,
}

/// Looks at the first value and what follows it.
pub(super) fn layout<R: Read + Seek>(input: &mut R) -> io::Result<Layout> {
    // A first line is not longer than this; what goes on behind it stands alone.
    let head = Read::take(&mut *input, LINE_BYTES_MAX as u64 + 1);
    let mut cutter = Cutter::new(head);
    let alone = match cutter.peek()? {
        Some(b'[') => Layout::Array,
        _ => Layout::Object,
    };
    let begun = cutter.line();
    let cut = cutter.value(&mut Vec::new(), 0)?;
    let (ended, length) = (cutter.line(), cutter.passed());
    let more = cutter.peek()?.is_some();
    // A line end behind a single object is what a file of lines has after its first record; taken as
    // such, it is read the same way when the next one comes.
    let first_of_lines = alone == Layout::Object
        && begun == ended
        && cutter.line() > ended
        && length <= LINE_BYTES_MAX as u64;
    Ok(match cut {
        // One value a line, and more than one: lines. A value over several lines stands alone.
        Cut::Whole | Cut::TooLong if (more && begun == ended) || first_of_lines => Layout::Lines,
        Cut::Whole | Cut::TooLong => alone,
        // A broken line hides where it ends.
        Cut::Unfinished if alone == Layout::Object && ended > begun => {
            input.rewind()?;
            if breaks_at_records(input)? { Layout::Lines } else { alone }
        }
        Cut::Unfinished => alone,
        Cut::Missing => Layout::Lines,
    })
}

/// Whether the second line begins a value of its own, and not one inside the first line's.
fn breaks_at_records<R: Read>(input: &mut R) -> io::Result<bool> {
    let mut lines = Lines::new(input);
    let mut first = None;
    while let Some(line) = lines.next()? {
        let text = line.text.trim_end();
        match first {
            _ if text.is_empty() && !line.too_long => {}
            None => first = Some(text.ends_with(['[', ',', ':', '{'])),
            Some(goes_on) => return Ok(!goes_on && text.starts_with('{')),
        }
    }
    Ok(false)
}

/// Reports what follows a whole value.
pub(super) fn rest<R: Read>(
    cutter: &mut Cutter<R>,
    cut: Cut,
    emit: &mut Emit<'_, '_>,
) -> io::Result<()> {
    if cut == Cut::Whole && !emit.stopped() && cutter.peek()?.is_some() {
        let detail = "expected the end of the file; what follows the first value is not read";
        emit.finding(Severity::Warning, "bad-json", cutter.line(), detail);
    }
    Ok(())
}
