//! The findings of a review, as words.

use crate::source::text::push_piece;
use serde::Deserialize;

/// What a review found, a finding a paragraph.
pub(super) fn render(json: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Lines {
        start: i64,
        end: i64,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Place {
        absolute_file_path: String,
        line_range: Lines,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Found {
        title: String,
        body: String,
        code_location: Place,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Review {
        findings: Vec<Found>,
        overall_correctness: String,
        overall_explanation: String,
    }
    let Ok(review) = serde_json::from_str::<Review>(json) else {
        return if json == "null" { String::new() } else { json.to_owned() };
    };
    let mut words = review.overall_correctness;
    push_piece(&mut words, &review.overall_explanation, "\n");
    for found in &review.findings {
        let place = &found.code_location;
        let lines = format!("{}-{}", place.line_range.start, place.line_range.end);
        let place = match place.absolute_file_path.as_str() {
            "" => String::new(),
            path => format!(" ({path}:{lines})"),
        };
        push_piece(&mut words, &format!("{}{place}\n{}", found.title, found.body), "\n\n");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_title_place_and_body() {
        let json = r#"{"findings":[{"title":"Leak","body":"It leaks.","confidence_score":0.9,
            "code_location":{"absolute_file_path":"/a.rs","line_range":{"start":1,"end":2}}}],
            "overall_correctness":"incorrect","overall_explanation":"One bug."}"#;
        let expected = "incorrect\nOne bug.\n\nLeak (/a.rs:1-2)\nIt leaks.";
        assert_eq!(render(json), expected);
        assert_eq!(render("null"), "");
    }
}
