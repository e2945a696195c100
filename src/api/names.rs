//! Makes valid object names and label values. Shortens a text that is too long, and adds a hash to keep
//! different texts different.

use kube_values::name;

use super::digest;

/// The maximum length of a DNS label and of a label value, in characters.
pub const DNS_LABEL: usize = 63;
/// The maximum length of a DNS subdomain, in characters. Most object names are DNS subdomains.
pub const DNS_SUBDOMAIN: usize = 253;

const HASH: usize = 10;

/// The rule for the names of namespaces, as a hint for users.
pub const NAMESPACE_FORM: &str = "a namespace has at most 63 lower-case letters, digits and hyphens, and begins and ends with a letter or a digit";

/// Returns whether a text is a valid name of a namespace: a DNS label.
pub fn is_namespace(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= DNS_LABEL
        && ends.into_iter().all(|end| end.is_some_and(plain))
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
}

/// Returns the name of the ReleasePin of a component in an environment. The RenderedRelease has the same
/// name.
pub fn pin(component: &str, environment: &str) -> String {
    subdomain(&format!("{component}-{environment}"))
}

/// Returns the name of the snapshot with this content hash, for a component in an environment.
pub fn snapshot(component: &str, environment: &str, content_hash: &str) -> String {
    with_suffix(&pin(component, environment), &short(content_hash))
}

/// Returns the name of the release of a component with this version.
pub fn release(component: &str, version: &str) -> String {
    subdomain(&format!("{component}-{version}"))
}

/// Returns the name of a release without a version: the name of the component and the start of the content
/// hash.
pub fn release_by_content(component: &str, content_hash: &str) -> String {
    with_suffix(component, &short(content_hash))
}

/// Returns the name of the AuditEntry that records one generation of a ReleasePin.
pub fn audit_entry(pin: &str, uid: &str, generation: i64) -> String {
    let uid: String = uid.chars().take(8).collect();
    with_suffix(pin, &format!("{uid}-{generation}"))
}

/// Returns the name of the AuditEntry with this number in a component's chain, which records marks and
/// deletions of releases.
pub fn release_audit_entry(component: &str, number: i64) -> String {
    with_suffix(component, &format!("releases-{number}"))
}

/// Converts a text to a DNS subdomain, which most object names are. An invalid character becomes `-`.
pub fn subdomain(text: &str) -> String {
    let parts: Vec<String> = text
        .split('.')
        .map(|part| hyphenated(part).trim_matches('-').to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    cut(&or_hash(parts.join("."), text), text, DNS_SUBDOMAIN)
}

/// Converts a text to a DNS label, for the names of namespaces and services.
pub fn label(text: &str) -> String {
    let name = hyphenated(text).replace('.', "-");
    cut(
        &or_hash(name.trim_matches('-').to_owned(), text),
        text,
        DNS_LABEL,
    )
}

/// Converts a text to a label value. A valid text stays unchanged. Any other text gets a hash, so that two
/// texts never give the same value.
pub fn label_value(text: &str) -> String {
    if name::label_value(text).is_ok() {
        return text.to_owned();
    }
    let clean: String = text
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '-',
        })
        .collect();
    let kept = truncate(&clean, DNS_LABEL - HASH - 1);
    let kept = kept.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    joined(kept, &short(&digest::of_bytes(text.as_bytes())))
}

/// Joins a prefix and a suffix to a name. If the name would be too long, shortens only the prefix, and adds a
/// hash to it.
fn with_suffix(prefix: &str, suffix: &str) -> String {
    let prefix = subdomain(prefix);
    let room = DNS_SUBDOMAIN.saturating_sub(suffix.len() + 1);
    let name = joined(&cut(&prefix, &prefix, room), suffix);
    subdomain(&name)
}

fn cut(name: &str, original: &str, limit: usize) -> String {
    if name.len() <= limit {
        return name.to_owned();
    }
    let kept = truncate(name, limit.saturating_sub(HASH + 1));
    let kept = kept.trim_end_matches(['-', '.']);
    joined(kept, &short(&digest::of_bytes(original.as_bytes())))
}

fn joined(prefix: &str, suffix: &str) -> String {
    if prefix.is_empty() {
        suffix.to_owned()
    } else {
        format!("{prefix}-{suffix}")
    }
}

/// Returns `name`, or a hash of `original` if `name` is empty.
fn or_hash(name: String, original: &str) -> String {
    if name.is_empty() {
        short(&digest::of_bytes(original.as_bytes()))
    } else {
        name
    }
}

fn hyphenated(text: &str) -> String {
    text.chars()
        .map(|c| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '.') => c,
            _ => '-',
        })
        .collect()
}

fn short(hash: &str) -> String {
    truncate(hash, HASH).to_owned()
}

/// Shortens a text to at most `limit` bytes, and never cuts a character.
fn truncate(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_values::name::Form;
    use proptest::prelude::*;

    const CONTENT: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_namespace_is_a_dns_label() {
        let long = "a".repeat(DNS_LABEL);
        for text in ["shop", "a", "1", "a-1", long.as_str()] {
            assert!(is_namespace(text), "{text:?}");
        }
        let longer = format!("{long}a");
        for text in [
            "", "a b", "shop ", "a/b", "a.b", "A", "-a", "a-", "ä", "a\nb", "a\u{1b}", "..",
            &longer,
        ] {
            assert!(!is_namespace(text), "{text:?}");
        }
    }

    #[test]
    fn names_of_ordinary_length_read_as_they_should() {
        for (name, expected) in [
            (
                pin("checkout-service", "production"),
                "checkout-service-production",
            ),
            (release("checkout", "v1.2.3"), "checkout-v1.2.3"),
            (
                release("checkout", "1.2.3+build.5"),
                "checkout-1.2.3-build.5",
            ),
            (release("checkout", "1.0_RC1"), "checkout-1.0-rc1"),
            (release("checkout", "v1..2-"), "checkout-v1.2"),
            (
                release_by_content("checkout", CONTENT),
                "checkout-0123456789",
            ),
            (
                snapshot("checkout", "staging", CONTENT),
                "checkout-staging-0123456789",
            ),
            (
                audit_entry(
                    "checkout-staging",
                    "6f9619ff-8b86-d011-b42d-00c04fc964ff",
                    12,
                ),
                "checkout-staging-6f9619ff-12",
            ),
            (release_audit_entry("checkout", 3), "checkout-releases-3"),
            (label("My.Service"), "my-service"),
            (label_value("v1.2.3"), "v1.2.3"),
            (label_value(""), ""),
        ] {
            assert_eq!(name, expected);
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "a".repeat(300);
        let other = format!("{long}b");
        for (one, two, length) in [
            (subdomain(&long), subdomain(&other), DNS_SUBDOMAIN),
            (label(&long), label(&other), DNS_LABEL),
            (label_value(&long), label_value(&other), DNS_LABEL),
            (
                snapshot(&long, "production", CONTENT),
                snapshot(&other, "production", CONTENT),
                DNS_SUBDOMAIN,
            ),
        ] {
            assert_eq!((one.len(), two.len()), (length, length));
            assert_ne!(one, two);
        }
        assert!(audit_entry(&long, "6f9619ff-8b86", 7).ends_with("-6f9619ff-7"));
        assert!(snapshot(&long, "production", CONTENT).ends_with("-0123456789"));
    }

    proptest! {
        #[test]
        fn every_name_is_valid(a in ".{0,300}", b in "[-a-zA-Z0-9.+_]{0,300}", n in 1i64..) {
            for name in [
                pin(&a, &b),
                release(&b, &a),
                release_by_content(&a, CONTENT),
                snapshot(&a, &b, CONTENT),
                audit_entry(&b, "6f9619ff-8b86", n),
                release_audit_entry(&a, n),
                subdomain(&b),
            ] {
                prop_assert!(Form::Subdomain.check(&name).is_ok(), "{:?}", name);
            }
            for name in [label(&a), label(&b)] {
                prop_assert!(Form::Label.check(&name).is_ok(), "{:?}", name);
            }
            for value in [label_value(&a), label_value(&b)] {
                prop_assert!(name::label_value(&value).is_ok(), "{:?}", value);
            }
        }

        #[test]
        fn what_is_valid_is_kept(text in "[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?") {
            prop_assert_eq!(subdomain(&text), text.clone());
            prop_assert_eq!(label(&text), text.clone());
            prop_assert_eq!(label_value(&text), text);
        }

        #[test]
        fn two_texts_never_share_a_label_value(a in ".{0,80}", b in ".{0,80}") {
            prop_assume!(a != b);
            prop_assert_ne!(label_value(&a), label_value(&b));
        }
    }
}
