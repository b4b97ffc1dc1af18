//! Conversations written down as text: Markdown of aider and SpecStory, and plain `role: words`.

mod toolbox;
pub(super) mod aider;
pub(super) mod fence;
pub(super) mod plain;
pub(super) mod specstory;

use super::emit::Emit;
use super::lines::Lines;
use std::io::{self, Read};

/// A reader that is fed one line after the other.
trait Feed<'e, 's: 'e> {
    /// Its way out.
    fn emit(&mut self) -> &mut Emit<'e, 's>;

    /// Takes the next line, with its number from 1.
    fn line(&mut self, line: &str, number: u32);

    /// Emits what is still held, when there are no more lines.
    fn end(&mut self);
}

/// Feeds all lines of `input` to a reader, until the sink wants no more.
fn feed<'e, 's: 'e>(input: impl Read, reader: &mut impl Feed<'e, 's>) -> io::Result<()> {
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next()? {
        if reader.emit().stopped() {
            break;
        }
        if reader.emit().takes(&line) {
            reader.line(&line.text, line.number);
        }
    }
    reader.end();
    reader.emit().finish();
    Ok(())
}
