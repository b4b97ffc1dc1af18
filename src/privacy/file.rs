//! Private files: their front matter says so.

/// Whether the file's front matter says `private: true` (or yes, or on): quoted or not, in any
/// case, indented, commented; a block that never ends counts, and of several the private one
/// counts.
pub fn is_private_file(text: &str) -> bool {
    // A mark of byte order hides no front matter, and ends none.
    let mut lines = text.split(['\n', '\r']).skip_while(|line| unmarked(line).trim().is_empty());
    if !lines.next().is_some_and(|line| is_fence(unmarked(line), "---")) {
        return false;
    }
    lines.take_while(|line| !is_fence(line, "---") && !is_fence(line, "...")).any(says_private)
}

fn unmarked(line: &str) -> &str {
    line.trim_start_matches('\u{feff}')
}

fn is_fence(line: &str, fence: &str) -> bool {
    line.trim_end() == fence
}

fn says_private(line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else { return false };
    let key = key.trim().trim_matches(['"', '\'']).trim();
    let value = value.trim();
    let word = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = value.get(1..).unwrap_or_default();
            let (word, after) = inner.split_once(quote).unwrap_or((inner, ""));
            let after = after.trim_start();
            if !after.is_empty() && !after.starts_with('#') {
                return false;
            }
            word.trim()
        }
        Some(_) | None => {
            let comment = value.find(" #").or_else(|| value.find("\t#"));
            value.get(..comment.unwrap_or(value.len())).unwrap_or_default().trim()
        }
    };
    let yes = ["true", "yes", "on"].iter().any(|yes| word.eq_ignore_ascii_case(yes));
    yes && key.eq_ignore_ascii_case("private")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_may_say_private_in_many_ways() {
        for yes in [
            "---\nprivate: true # note\n---\n",
            "\u{feff}---\r\nprivate: \"Yes\"\r\n---\r\n",
            "\n---\ntitle: x\n  private : on\n",
            "---\nprivate:true\n",
            "---\nprivate: true\nprivate: false\n---\n",
            "\n\u{feff}---\n\u{feff}---\nprivate: true\n---\n",
        ] {
            assert!(is_private_file(yes), "{yes:?}");
        }
        for no in
            ["", "---\nprivate: trueish\n---\n", "private: true", "---\na: 1\n---\nprivate: on\n"]
        {
            assert!(!is_private_file(no), "{no:?}");
        }
    }
}
