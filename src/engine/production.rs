//! Finds out whether a namespace is production, for subjects whose namespace no Environment object
//! names.

use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::api::Environment;

/// The environment of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the environment, or else of the namespace.
    pub name: String,
    /// Whether the environment is a production environment.
    pub is_production: bool,
    /// Whether every change needs a reason.
    pub requires_reason: bool,
    /// The namespace and the name of the Environment object; None if there is none.
    pub environment: Option<(String, String)>,
}

/// Finds the environment that a namespace belongs to: the Environment object that names the namespace, or else
/// the namespace itself, which is production if its name has the word `prod` or `production`.
///
/// A cluster without Environments, or a user who may not list them, is no failure.
pub async fn place(client: &Client, namespace: &str) -> Place {
    let environments: Api<Environment> = Api::all(client.clone());
    let listed = environments.list(&ListParams::default()).await;
    let mut found = listed.map_or_else(|_| Vec::new(), |list| list.items);
    found.retain(|environment| environment.spec.namespace == namespace);
    // Two control planes may name the same namespace: production wins.
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

/// Returns whether a name has the word `prod` or `production`.
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
