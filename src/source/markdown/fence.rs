//! Whether a line of Markdown stands inside a fenced block: what stands there is quoted, whatever it
//! looks like.

/// The fence that is open, if any.
#[derive(Default)]
pub(in crate::source) struct Fence {
    /// Its character and length.
    open: Option<(char, usize)>,
}

impl Fence {
    /// Takes the next line; says whether it is inside a fence or one of its borders.
    pub(in crate::source) fn line(&mut self, line: &str) -> bool {
        let text = line.trim();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let length = text.chars().take_while(|c| Some(*c) == mark).count();
        let rest = text.get(length..).unwrap_or_default();
        match (self.open, mark) {
            (None, Some(mark)) if length >= 3 && !rest.contains('`') => {
                self.open = Some((mark, length));
                true
            }
            (Some((open, least)), Some(mark))
                if open == mark && length >= least && rest.is_empty() =>
            {
                self.open = None;
                true
            }
            (Some(_), _) => true,
            (None, _) => false,
        }
    }

    /// Whether a fence is open.
    pub(in crate::source) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Forgets the fence: what was being written was broken off.
    pub(in crate::source) fn reset(&mut self) {
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, inside: &[bool]) {
        let mut fence = Fence::default();
        let got: Vec<bool> = text.lines().map(|line| fence.line(line)).collect();
        assert_eq!(got, inside);
    }

    #[test]
    fn a_fence_ends_with_its_own_mark() {
        check("a\n```rs\n#### x\n~~~\n```\nb", &[false, true, true, true, true, false]);
        check("````\n```\n````\nb", &[true, true, true, false]);
        check("```one line```\nb", &[false, false]);
    }
}
