//! Lines that are almost JSON: parsed as they stand, or mended and parsed again.

/// How a line parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parsed {
    /// As it stands.
    AsIs,
    /// After mending.
    Mended,
    /// Not at all.
    Not,
}

/// Lets `read` parse an object, mended if it has to be.
pub(super) fn parse(text: &str, mut read: impl FnMut(&str) -> serde_json::Result<()>) -> Parsed {
    if !text.trim_start().starts_with('{') {
        return Parsed::Not;
    }
    if read(text).is_ok() {
        return Parsed::AsIs;
    }
    match read(&mend(text)) {
        Ok(()) => Parsed::Mended,
        Err(_) => Parsed::Not,
    }
}

/// Mends what JSON forbids and transcripts hold all the same: halves of surrogate pairs, and bare
/// control characters. Only for lines that did not parse.
fn mend(line: &str) -> String {
    let mut mended = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c == '\\' || c < ' ') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let used = mend_one(rest, &mut mended);
        rest = rest.get(used..).unwrap_or_default();
    }
    mended.push_str(rest);
    mended
}

/// Mends the escape or control character that `rest` begins with; says how many bytes it took.
fn mend_one(rest: &str, mended: &mut String) -> usize {
    if !rest.starts_with('\\') {
        mended.push(' ');
        return 1;
    }
    let (high, low) = (surrogate(rest), rest.get(6..).and_then(surrogate));
    match (high, low) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => {
            mended.push_str(&rest[..12]);
            12
        }
        (Some(_), _) => {
            mended.push('\u{fffd}');
            6
        }
        (None, _) => {
            let used = rest.chars().take(2).map(char::len_utf8).sum();
            mended.push_str(&rest[..used]);
            used
        }
    }
}

/// The half of a surrogate pair that `text` begins with, as `\ud83d`.
fn surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_mended_and_a_whole_one_kept() {
        let mended = mend("{\"a\":\"x\\ud83d y\\ud83d\\ude00 \\\\ud83d \u{0}\"}");
        let read: serde_json::Value = serde_json::from_str(&mended).unwrap();
        assert_eq!(read["a"], "x\u{fffd} y\u{1f600} \\ud83d  ");
    }

    #[test]
    fn mending_ends_at_any_cut() {
        let line = "a\\ud83d\\ude00\\n\u{1}é\\";
        for cut in (0..=line.len()).filter(|cut| line.is_char_boundary(*cut)) {
            mend(&line[..cut]);
        }
    }
}
