//! What a line of aider's history is, told by its first characters.

/// What a chat begins with, before its time.
const START: &str = "# aider chat started at ";
/// Lines of a banner, which aider prints at every start, and of its accounts.
const NOISE: [&str; 22] = [
    "Aider v",
    "Main model:",
    "Model:",
    "Models:",
    "Weak model:",
    "Editor model:",
    "Git repo:",
    "Git working dir:",
    "Repo-map:",
    "Use /help ",
    "Tokens:",
    "Cost:",
    "You can use /undo ",
    "You can skip this check",
    "VSCode terminal detected",
    "Initial repo scan",
    "Too soon to check version",
    "Loaded ",
    "Note: in-chat filenames",
    "Restored previous conversation",
    "Newer aider version",
    "https://aider.chat/",
];
/// Answers that a person gives to aider's questions.
const ANSWERS: [&str; 14] = [
    "y", "n", "yes", "no", "a", "all", "s", "skip", "skip all", "d", "don't", "o", "always",
    "never",
];

/// The time of a chat's start, if the line is one and nothing else.
pub(in crate::source) fn start_of(line: &str) -> Option<&str> {
    let time = line.strip_prefix(START)?.trim_end();
    let shape = "dddd-dd-dd dd:dd:dd";
    let fits = time.len() == shape.len()
        && time.chars().zip(shape.chars()).all(|(c, s)| match s {
            'd' => c.is_ascii_digit(),
            _ => c == s,
        });
    fits.then_some(time)
}

/// What a person typed on this line.
pub(super) fn typed(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("####")?;
    let rest = rest.strip_suffix("  ").unwrap_or(rest);
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// What was printed on this line.
pub(super) fn printed(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('>')?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ').map(str::trim_end) }
}

/// Whether a printed line cannot stand inside a reply, even if its fence was never closed.
pub(super) fn ends_a_reply(words: &str) -> bool {
    ["Tokens: ", "^C", "Applied edit to "].iter().any(|start| words.starts_with(start))
        || is_commit(words)
}

pub(super) fn is_commit(words: &str) -> bool {
    let Some(rest) = words.strip_prefix("Commit ") else { return false };
    let Some((sha, message)) = rest.split_once(' ') else { return false };
    (7..=40).contains(&sha.len())
        && sha.bytes().all(|b| b.is_ascii_hexdigit())
        && !message.trim().is_empty()
}

/// Whether a line belongs to the banner or to aider's accounts.
pub(super) fn is_noise(words: &str) -> bool {
    NOISE.iter().any(|start| words.starts_with(start)) || is_start_command(words)
}

/// Whether a line is the command line that aider was started with.
pub(super) fn is_start_command(words: &str) -> bool {
    let program = words.split_whitespace().next().unwrap_or_default();
    program == "aider" || program.ends_with("/aider") || program.ends_with("\\aider.exe")
}

/// Whether a line is a question of aider's; and if so, whether it has a person's answer.
pub(super) fn question(words: &str) -> Option<bool> {
    let is_answer = |rest: &str| ANSWERS.contains(&rest.trim().to_lowercase().as_str());
    if words.contains("? (Y)es/(N)o") {
        return Some(words.rsplit_once(':').is_some_and(|(_, answer)| !answer.trim().is_empty()));
    }
    let (question, rest) = words.rsplit_once('?')?;
    let rest = ["[Y/n]", "[y/N]", "[y/n]", "(y/n)"]
        .iter()
        .find_map(|options| rest.trim_start().strip_prefix(options))
        .unwrap_or(rest);
    (question.contains(' ') && is_answer(rest)).then_some(true)
}

/// The name of a slash command, or `run` for a shell escape; a path is neither.
pub(super) fn command(text: &str) -> Option<&str> {
    if text.starts_with('!') {
        return Some("run");
    }
    let name = text.strip_prefix('/')?.split_whitespace().next()?;
    name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-').then_some(name)
}

/// The words behind a command that only says who should answer them, if there are any.
pub(super) fn asked(text: &str) -> Option<&str> {
    const MODES: [&str; 3] = ["/ask", "/code", "/architect"];
    let rest = MODES.iter().find_map(|mode| text.strip_prefix(mode))?;
    let words = rest.trim_start();
    (words.len() < rest.len() && !words.is_empty()).then_some(words)
}
