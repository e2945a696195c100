//! Guesses which ReleasePins are in a text that cannot be parsed, such as a file in a merge conflict. It looks at
//! single lines.
//!
//! The API of the repository does not return these ReleasePins. They are only used to tell the user which ReleasePins
//! are unknown.

use std::sync::LazyLock;

use regex::Regex;

use super::index::LeftOutPin;

/// A regular expression for the fields that identify a ReleasePin. A field is on its own line or in braces. Its value
/// ends at a quote, a comma or a comment.
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "namespace|name|component|environment";
    let text = format!(r#"["']?\b({words})["']?\s*:\s*["']?([A-Za-z0-9][A-Za-z0-9.\-]*)"#);
    Regex::new(&text).ok()
});

/// Returns the ReleasePins that a text seems to contain. Skips documents without a component or an environment.
pub(super) fn pins(text: &str) -> Vec<LeftOutPin> {
    let documents = bounded_yaml::split(text.as_bytes()).into_iter();
    let documents = documents.filter_map(|document| std::str::from_utf8(document).ok());
    let documents = documents.filter(|document| document.contains("ReleasePin"));
    documents.filter_map(pin).collect()
}

fn pin(document: &str) -> Option<LeftOutPin> {
    let fields = FIELD.as_ref()?;
    // In a ReleasePin, the first field `name` is its own name, and the second is the name of its release.
    let find = |word: &str| {
        let mut found = fields.captures_iter(document);
        let found = found.find(|found| found.get(1).is_some_and(|own| own.as_str() == word))?;
        Some(found.get(2)?.as_str().to_owned())
    };
    let (component, environment) = (find("component")?, find("environment")?);
    Some(LeftOutPin {
        namespace: find("namespace").unwrap_or_default(),
        name: find("name").unwrap_or_default(),
        component,
        environment,
        problem: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata:\n  name: cart-prod\n  namespace: shop\n  labels:\n    openchoreo.dev/component: cart\nspec:\n  component: cart # the cart\n  environment: \"prod\"\n  releaseRef:\n    name: cart-1\n";

    #[test]
    fn a_release_pin_is_found_by_its_lines() {
        let conflict = PIN.replace(
            "    name: cart-1\n",
            "<<<<<<< HEAD\n    name: cart-1\n=======\n    name: cart-2\n>>>>>>> other\n",
        );
        let json = "{\"kind\": \"ReleasePin\", \"metadata\": {\"name\": \"cart-prod\", \"namespace\": \"shop\"}, \"spec\": {\"component\": \"cart\", \"environment\": \"prod\"";
        let twice = format!("{PIN}---\n{PIN}a: [\n");
        for (text, expected) in [
            (format!("{PIN}a: [\n"), 1),
            (conflict, 1),
            (json.to_owned(), 1),
            (twice, 2),
            (PIN.replace("environment", "place"), 0),
            (PIN.replace("ReleasePin", "Release"), 0),
        ] {
            let found = pins(&text);
            assert_eq!(found.len(), expected, "{text}");
            for pin in found {
                let own = [&pin.namespace, &pin.name, &pin.component, &pin.environment];
                assert_eq!(own, ["shop", "cart-prod", "cart", "prod"], "{text}");
            }
        }
    }
}
