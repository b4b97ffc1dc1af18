//! What a text points to within the directory.

/// Something within the directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Link {
    /// A Markdown file.
    File(String),
    /// A record, by its number.
    Record(u32),
}

/// The links of a text that stands in the file at `path`, each with its line from 0. What leads out of the
/// directory is none of ours.
pub(super) fn links(path: &str, text: &str) -> Vec<(u32, Link)> {
    let mut links = Vec::new();
    for (line, content) in (0..).zip(text.lines()) {
        for (at, _) in content.match_indices("](") {
            let rest = content.get(at + 2..).unwrap_or_default();
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            links.extend(file(path, target).map(|file| (line, Link::File(file))));
        }
        for (at, label) in content.match_indices("ADR-") {
            let before = content.get(..at).and_then(|head| head.chars().next_back());
            let rest = content.get(at + label.len()..).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let is_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '-');
            // `ADR-007-title.md` is a file's name, in a link most often.
            let is_name = rest.get(digits..).is_some_and(|rest| rest.starts_with('-'));
            let number = rest.get(..digits).and_then(|digits| digits.parse().ok());
            if digits >= 3 && is_word && !is_name {
                links.extend(number.map(|number| (line, Link::Record(number))));
            }
        }
    }
    links
}

/// The file that a target names, relative to the directory.
fn file(path: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or(target);
    if !target.ends_with(".md") || target.contains(':') || target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_files_of_the_directory_and_numbers_of_records() {
        let text = "a [x](../decisions/ADR-001-x.md#y) and ADR-007,\n[y](https://a.md) [z](/a.md) [o](../../o.md) XADR-001 ADR-XXX";
        let expected = [(0, Link::File("decisions/ADR-001-x.md".to_owned())), (0, Link::Record(7))];
        assert_eq!(links("sessions/s.md", text), expected);
    }
}
