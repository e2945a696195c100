//! Finds the paths in Rust source, such as `crate::api::labels`. This is not a full parser, so it works only
//! for code that rustfmt has formatted.

/// The segments of a path, such as `["crate", "api", "labels"]`.
pub(super) type Segments = Vec<String>;

/// Returns a source text without its comment lines.
pub(super) fn without_comments(source: &str) -> String {
    let code = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the code without its test-only items. Also returns the names of its test-only modules.
pub(super) fn without_tests(code: &str) -> (String, Vec<String>) {
    let mut kept = String::new();
    let mut modules = Vec::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        while lines
            .next_if(|line| line.trim_start().starts_with("#["))
            .is_some()
        {}
        let Some(first) = lines.next() else { break };
        if let Some(name) = first.trim().strip_suffix(';').and_then(module_name) {
            modules.push(name.to_owned());
        }
        if first.ends_with([';', '}', ',']) {
            continue;
        }
        let indent = first.len() - first.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        for line in lines.by_ref() {
            if line.starts_with(&end) {
                break;
            }
        }
    }
    (kept, modules)
}

fn module_name(item: &str) -> Option<&str> {
    let (before, name) = item.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// Returns the paths that begin with one of `roots`. A path with a group (`a::{b, c}`) gives one path per
/// member.
pub(super) fn paths(code: &str, roots: &[&str]) -> Vec<Segments> {
    let mut found = Vec::new();
    for root in roots {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| is_word(c) || c == ':') {
                found.extend(tree(&code[at..]).0);
            }
        }
    }
    found
}

/// Returns the paths of the public `use` items.
pub(super) fn exported(code: &str) -> Vec<Segments> {
    let uses = code.match_indices("use ");
    let public = uses.filter(|(at, _)| {
        let line = code[..*at].rsplit('\n').next().unwrap_or_default();
        line.trim_start().starts_with("pub")
    });
    public
        .flat_map(|(at, word)| tree(&code[at + word.len()..]).0)
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the paths that the path at the start of a text stands for, one per member of its groups. Also
/// returns the rest of the text.
fn tree(text: &str) -> (Vec<Segments>, &str) {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        let mut found = Vec::new();
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if rest.is_empty() {
                return (found, rest);
            }
            if let Some(after) = rest.strip_prefix('}') {
                return (found, after);
            }
            let (inner, after) = tree(rest);
            found.extend(inner);
            // Skips `as name` and the star of a glob import.
            rest = &after[after.find([',', '}']).unwrap_or(after.len())..];
        }
    }
    let (word, rest) = text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
    let segment = || word.to_owned();
    match rest.strip_prefix("::") {
        Some(inner) if inner.starts_with(|c| is_word(c) || c == '{') => {
            let (inner, after) = tree(inner);
            let with = |path: Segments| [vec![segment()], path].concat();
            (inner.into_iter().map(with).collect(), after)
        }
        _ => (vec![vec![segment()]], rest),
    }
}
