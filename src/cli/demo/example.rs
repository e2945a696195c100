//! The example in deploy/examples, with which the demo fills its store, and the definitions of its releases.

use bowline_core::fixture;
use kube::Client;
use serde_json::{Value, json};

use crate::api::{Definitions, labels};
use crate::connect::explain;
use crate::subjects::release_pin::catalog::{Catalog, CatalogError};

/// The files of deploy/examples, compiled into bowline: path and content.
#[rustfmt::skip]
pub(super) const FILES: &[(&str, &str)] = &[
    ("addons/autoscaler.yaml", include_str!("../../../deploy/examples/addons/autoscaler.yaml")),
    ("addons/network-policy.yaml", include_str!("../../../deploy/examples/addons/network-policy.yaml")),
    ("addons/persistent-volume-claim.yaml", include_str!("../../../deploy/examples/addons/persistent-volume-claim.yaml")),
    ("component-types/scheduled-task.yaml", include_str!("../../../deploy/examples/component-types/scheduled-task.yaml")),
    ("component-types/web-app.yaml", include_str!("../../../deploy/examples/component-types/web-app.yaml")),
    ("components/cart.yaml", include_str!("../../../deploy/examples/components/cart.yaml")),
    ("components/checkout-service.yaml", include_str!("../../../deploy/examples/components/checkout-service.yaml")),
    ("components/email-digest.yaml", include_str!("../../../deploy/examples/components/email-digest.yaml")),
    ("components/frontend.yaml", include_str!("../../../deploy/examples/components/frontend.yaml")),
    ("components/product-catalog.yaml", include_str!("../../../deploy/examples/components/product-catalog.yaml")),
    ("components/recommendation.yaml", include_str!("../../../deploy/examples/components/recommendation.yaml")),
    ("env-settings/development/cart.yaml", include_str!("../../../deploy/examples/env-settings/development/cart.yaml")),
    ("env-settings/development/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/development/checkout-service.yaml")),
    ("env-settings/development/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/development/email-digest.yaml")),
    ("env-settings/development/frontend.yaml", include_str!("../../../deploy/examples/env-settings/development/frontend.yaml")),
    ("env-settings/development/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/development/product-catalog.yaml")),
    ("env-settings/development/recommendation.yaml", include_str!("../../../deploy/examples/env-settings/development/recommendation.yaml")),
    ("env-settings/production-eu/cart.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/cart.yaml")),
    ("env-settings/production-eu/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/checkout-service.yaml")),
    ("env-settings/production-eu/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/email-digest.yaml")),
    ("env-settings/production-eu/frontend.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/frontend.yaml")),
    ("env-settings/production-eu/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/product-catalog.yaml")),
    ("env-settings/production-eu/recommendation.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/recommendation.yaml")),
    ("env-settings/production-us/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/production-us/checkout-service.yaml")),
    ("env-settings/production-us/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/production-us/email-digest.yaml")),
    ("env-settings/production-us/frontend.yaml", include_str!("../../../deploy/examples/env-settings/production-us/frontend.yaml")),
    ("env-settings/production-us/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/production-us/product-catalog.yaml")),
    ("env-settings/staging/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/staging/checkout-service.yaml")),
    ("env-settings/staging/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/staging/email-digest.yaml")),
    ("env-settings/staging/frontend.yaml", include_str!("../../../deploy/examples/env-settings/staging/frontend.yaml")),
    ("env-settings/staging/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/staging/product-catalog.yaml")),
    ("env-settings/staging/recommendation.yaml", include_str!("../../../deploy/examples/env-settings/staging/recommendation.yaml")),
    ("environments/data-plane.yaml", include_str!("../../../deploy/examples/environments/data-plane.yaml")),
    ("environments/development.yaml", include_str!("../../../deploy/examples/environments/development.yaml")),
    ("environments/pipeline.yaml", include_str!("../../../deploy/examples/environments/pipeline.yaml")),
    ("environments/production-eu.yaml", include_str!("../../../deploy/examples/environments/production-eu.yaml")),
    ("environments/production-us.yaml", include_str!("../../../deploy/examples/environments/production-us.yaml")),
    ("environments/staging.yaml", include_str!("../../../deploy/examples/environments/staging.yaml")),
    ("workloads/cart.yaml", include_str!("../../../deploy/examples/workloads/cart.yaml")),
    ("workloads/checkout-service.yaml", include_str!("../../../deploy/examples/workloads/checkout-service.yaml")),
    ("workloads/email-digest.yaml", include_str!("../../../deploy/examples/workloads/email-digest.yaml")),
    ("workloads/frontend.yaml", include_str!("../../../deploy/examples/workloads/frontend.yaml")),
    ("workloads/product-catalog.yaml", include_str!("../../../deploy/examples/workloads/product-catalog.yaml")),
    ("workloads/recommendation.yaml", include_str!("../../../deploy/examples/workloads/recommendation.yaml")),
];

/// The settings in which older releases differ from the example: component, version, setting, value. Their images
/// differ too.
///
/// The store contains the definitions of the newest release.
const SETTINGS: &[(&str, &str, &str, &str)] = &[
    ("cart", "v0.8.6", "CART_TTL", "24h"),
    ("cart", "v0.8.7", "CART_TTL", "24h"),
    ("checkout-service", "v1.2.0", "PAYMENT_TIMEOUT", "5s"),
    ("checkout-service", "v1.2.1", "PAYMENT_TIMEOUT", "5s"),
    ("checkout-service", "v1.2.2", "DB_POOL_SIZE", "200"),
    ("checkout-service", "v1.2.3", "DB_POOL_SIZE", "40"),
    ("checkout-service", "v1.2.4", "DB_POOL_SIZE", "40"),
    ("email-digest", "v1.0.11", "DEDUPLICATE", "true"),
    ("frontend", "v5.2.0", "FEATURE_GIFT_CARDS", "true"),
    ("product-catalog", "v2.7.9", "SEARCH_LANGUAGES", "de,en"),
    ("recommendation", "v3.0.3", "MODEL_VERSION", "2025-09-02"),
];

/// An image that crashes in only one namespace. In the story of the demo, the hotfix works in staging, but not with
/// the settings of production.
const FAULTY: &str = "registry.example/shop/checkout-service:v1.2.3 in shop-production-eu";

/// The reason why the demo cannot write the example to its store.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExampleError {
    /// The files of the example do not fit together.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A file of the example cannot be parsed.
    #[error("{file}: {why}")]
    File {
        /// The path in deploy/examples of the file that cannot be parsed.
        file: &'static str,
        why: String,
    },
    /// The store refuses an object of the example.
    #[error("{file}: {}", explain(.error))]
    Target {
        /// The path in deploy/examples of the file with the refused object.
        file: &'static str,
        /// The error with which the store refuses the object.
        error: kube::Error,
    },
}

/// Returns the definitions of a version of a component.
pub(super) fn definitions(
    catalog: &Catalog,
    component: &str,
    version: &str,
) -> Result<Definitions, CatalogError> {
    let mut definitions = catalog.definitions(component)?;
    let spec = &mut definitions.workload.spec;
    if let Some((image, _)) = spec
        .image
        .as_deref()
        .and_then(|image| image.rsplit_once(':'))
    {
        spec.image = Some(format!("{image}:{version}"));
    }
    spec.other.insert("version".to_owned(), version.into());
    let parameters = &mut definitions.component.spec.parameters;
    if let Some(Value::Object(settings)) = parameters.get_mut("settings") {
        let own = SETTINGS.iter();
        let own = own.filter(|(of, at, ..)| (*of, *at) == (component, version));
        for (_, _, name, value) in own {
            settings.insert((*name).to_owned(), (*value).into());
        }
    }
    Ok(definitions)
}

/// Creates the objects of the example in the store. `newest` returns the version whose definitions a component gets.
pub(super) async fn create(
    client: &Client,
    catalog: &Catalog,
    newest: impl Fn(&str) -> Option<&'static str>,
) -> Result<(), ExampleError> {
    for (file, text) in FILES {
        let wrong = |why: String| ExampleError::File { file, why };
        for document in
            bounded_yaml::documents(file, text).map_err(|error| wrong(error.to_string()))?
        {
            let mut value = document.value;
            alter(&mut value, catalog, &newest)?;
            let created = fixture::create(client, &value).await;
            created.map_err(|error| ExampleError::Target { file, error })?;
        }
    }
    Ok(())
}

/// Changes an object of the example for the demo, for example to the newest version of its component.
fn alter(
    object: &mut Value,
    catalog: &Catalog,
    newest: &impl Fn(&str) -> Option<&'static str>,
) -> Result<(), CatalogError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default().to_owned();
    match text("/kind") {
        Some("Component" | "Workload") if let Some(version) = newest(&name) => {
            let of = definitions(catalog, &name, version)?;
            let made = match text("/kind") {
                Some("Component") => serde_json::to_value(&of.component),
                _ => serde_json::to_value(&of.workload),
            };
            if let Ok(made) = made {
                *object = made;
            }
        }
        Some("DataPlane") => {
            object["metadata"]["annotations"] = json!({labels::FAULTY_IMAGES: FAULTY});
        }
        // The automatic gc of the controller is off, so that the user can try gc.
        Some("DeploymentPipeline") => {
            object["spec"]["retention"] =
                json!({"enabled": false, "keepReleases": 4, "keepSnapshots": 3, "minAge": "14d"});
        }
        _ => {}
    }
    Ok(())
}
