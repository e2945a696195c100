//! Compiles the regular expressions in schemas, which have Go's syntax.
//!
//! The source is translated first, because the regex crate differs from Go: in Go, `\d`, `\w`, `\s` and `\b` match
//! only ASCII, and inside brackets only `]`, `\` and ranges are special. A pattern that the regex crate cannot
//! compile is refused with its error.

use regex::{Regex, RegexBuilder};

/// Compiles a regular expression of a schema. Fails if the compiled expression is too large.
pub(super) fn compile(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(source))
        .size_limit(4 << 20)
        .build()
        .map_err(|e| e.to_string())
}

fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let mut class = false;
    let mut class_start = false;
    while let Some(c) = chars.next() {
        let first = std::mem::replace(&mut class_start, false);
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str(r"[\t\n\f\r ]"),
                Some('S') => out.push_str(r"[^\t\n\f\r ]"),
                Some('b') if !class => out.push_str(r"(?-u:\b)"),
                Some('B') if !class => out.push_str(r"(?-u:\B)"),
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if !class => {
                class = true;
                class_start = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // A POSIX class, such as `[:alpha:]`, is copied up to its closing bracket.
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str(r"\["),
            ']' if class && first => out.push_str(r"\]"),
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && chars.peek() == Some(&'-') => out.push_str(r"\-"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn go_patterns_mean_what_go_means() {
        for (pattern, yes, no) in [
            (r"^\d+$", "42", "٤٢"),
            (r"^[\w.-]+$", "a-b.c", "ä"),
            (r"^[[a]+$", "[a", "b"),
            (r"^[]a]+$", "]a", "b"),
            (r"^[[:alpha:]]+$", "abc", "a1"),
            (r"^[a&&b]+$", "a&b", "c"),
            (r"^\S+$", "abc", "a b"),
            (r"^[^/]+/v1$", "apps/v1", "/v1"),
        ] {
            let found = compile(pattern).expect(pattern);
            assert!(found.is_match(yes), "{pattern} must match {yes}");
            assert!(!found.is_match(no), "{pattern} must not match {no}");
        }
        assert!(compile("(").is_err());
        assert!(compile(r"(\w{1000}){1000}").is_err());
    }
}
