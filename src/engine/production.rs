//! Finds out whether a namespace is a production environment. Only for kinds of subjects that do not name an
//! environment, such as a workload.

use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::api::Environment;

/// The environment that a namespace belongs to, or the namespace itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the Environment object. If no Environment names the namespace, the name of the namespace.
    pub name: String,
    pub is_production: bool,
    /// Whether every change in the namespace needs a reason.
    pub requires_reason: bool,
    /// The namespace and the name of the Environment object; None if no Environment names the namespace.
    pub environment: Option<(String, String)>,
}

/// Finds the environment that a namespace belongs to: the Environment object that names the namespace. If there is
/// none, the namespace itself is the environment; it is production if its name contains the word `prod` or
/// `production`.
///
/// If the server has no Environments, or the user may not list them, the function uses the name of the namespace and
/// does not fail.
pub async fn place(client: &Client, namespace: &str) -> Place {
    let environments: Api<Environment> = Api::all(client.clone());
    let listed = environments.list(&ListParams::default()).await;
    let mut found = listed.map_or_else(|_| Vec::new(), |list| list.items);
    found.retain(|environment| environment.spec.namespace == namespace);
    // Environments of two control planes may name the same namespace. Then a production environment is taken, because
    // it has the stricter rules.
    found.sort_by_key(|environment| !environment.spec.is_production);
    match found.first() {
        Some(environment) => Place {
            name: environment.name_any(),
            is_production: environment.spec.is_production,
            requires_reason: environment.spec.requires_reason(),
            environment: Some((
                environment.namespace().unwrap_or_default(),
                environment.name_any(),
            )),
        },
        None => Place {
            name: namespace.to_owned(),
            is_production: is_production(namespace),
            requires_reason: false,
            environment: None,
        },
    }
}

/// Returns whether a name contains `prod` or `production` as a whole word.
pub fn is_production(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| ["prod", "production"].contains(&word.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_the_word_production_is_production() {
        for (name, expected) in [
            ("prod", true),
            ("shop-prod", true),
            ("prod-eu", true),
            ("Production", true),
            ("eu.production.shop", true),
            ("products", false),
            ("reproduction", false),
            ("staging", false),
            ("", false),
        ] {
            assert_eq!(is_production(name), expected, "{name}");
        }
    }
}
