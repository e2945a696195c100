//! Compares the rendered manifests of deploy/examples, for each component in each environment, with files
//! that people have reviewed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bowline::api::{Definitions, EnvSettings, Environment};
use bowline::render::{Inputs, Library, Rendered, render};
use bowline::subjects::release_pin::catalog::Catalog;
use serde_json::Value;

pub const ENVIRONMENTS: [&str; 4] = ["development", "staging", "production-eu", "production-us"];

pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/examples")
}

pub fn catalog() -> Catalog {
    Catalog::read(&directory(), None).unwrap()
}

fn rendered(catalog: &Catalog, component: &str, environment: &str) -> Rendered {
    let settings = catalog.settings(component, environment).unwrap();
    let inputs = Inputs {
        definitions: &catalog.definitions(component).unwrap(),
        settings: settings.as_ref(),
        environment: &catalog.environment(environment).unwrap(),
        namespace: &catalog.namespace,
    };
    render(&inputs, &Library::new()).unwrap()
}

/// Compares a text with the reviewed file `name` in snapshots/render.
fn compare(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path("../../snapshots/render");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn one_release_becomes_four_sets_of_manifests() {
    let catalog = catalog();
    for component in ["checkout-service", "email-digest"] {
        let mut different = BTreeSet::new();
        for environment in ENVIRONMENTS {
            let manifests = rendered(&catalog, component, environment).yaml();
            compare(&format!("{component}@{environment}"), &manifests);
            different.insert(manifests);
        }
        assert_eq!(different.len(), ENVIRONMENTS.len(), "{component}");
    }
}

#[test]
fn every_component_renders_everywhere_without_a_warning() {
    let catalog = catalog();
    let components: Vec<_> = catalog.names("Component").map(str::to_owned).collect();
    assert_eq!(components.len(), 6);
    assert_eq!(catalog.names("Environment").count(), 4);
    for component in &components {
        for environment in ENVIRONMENTS {
            let rendered = rendered(&catalog, component, environment);
            assert_eq!(rendered.warnings, [], "{component} in {environment}");
            assert!(rendered.resources.len() > 1, "{component} in {environment}");
            for resource in &rendered.resources {
                let text = serde_json::to_string(&resource.object).unwrap();
                assert!(!text.contains("${"), "{component} in {environment}: {text}");
            }
        }
    }
}

/// A generator of pseudo-random numbers. They are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Appends a value to `out` as JSON. The keys of every map are in a random order.
fn shuffled(value: &Value, numbers: &mut Numbers, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            out.push('{');
            while !entries.is_empty() {
                let (key, value) = entries.swap_remove(numbers.below(entries.len()));
                out.push_str(&serde_json::to_string(key).unwrap());
                out.push(':');
                shuffled(value, numbers, out);
                if !entries.is_empty() {
                    out.push(',');
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                shuffled(item, numbers, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T, numbers: &mut Numbers) -> T {
    let mut text = String::new();
    shuffled(&serde_json::to_value(value).unwrap(), numbers, &mut text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_order_of_maps_never_shows() {
    let catalog = catalog();
    let definitions = catalog.definitions("checkout-service").unwrap();
    let settings = catalog
        .settings("checkout-service", "production-eu")
        .unwrap()
        .unwrap();
    let environment = catalog.environment("production-eu").unwrap();
    let library = Library::new();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut bytes = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    let rounds = match std::env::var_os("BOWLINE_FULL") {
        Some(_) => 1000,
        None => 100,
    };
    for _ in 0..rounds {
        let mut definitions = Definitions {
            component: again(&definitions.component, &mut numbers),
            component_type_definition: again(&definitions.component_type_definition, &mut numbers),
            addons: definitions.addons.clone(),
            workload: again(&definitions.workload, &mut numbers),
        };
        for addon in &mut definitions.addons {
            addon.addon = again(&addon.addon, &mut numbers);
        }
        let settings: EnvSettings = again(&settings, &mut numbers);
        let environment: Environment = again(&environment, &mut numbers);
        let inputs = Inputs {
            definitions: &definitions,
            settings: Some(&settings),
            environment: &environment,
            namespace: "default",
        };
        let rendered = render(&inputs, &library).unwrap();
        bytes.insert(rendered.yaml());
        hashes.insert((definitions.content_hash(), rendered.hash()));
    }
    assert_eq!((bytes.len(), hashes.len()), (1, 1));
    println!("{rounds} renderings in random map order: the same bytes");
}
