use serde_json::json;

use super::cores::on_every_core;
use super::index::{Held, Index, Known};
use super::place::{Layout, choose};
use super::read::is_a_release;

fn index(files: &[(&str, &str, &str)]) -> Index {
    let mut index = Index::default();
    for (path, resource, name) in files {
        let known: &mut Known = index.files.entry((*path).to_owned()).or_default();
        known.objects.push(Held {
            releases: Vec::new(),
            resource: (*resource).to_owned(),
            namespace: String::new(),
            name: (*name).to_owned(),
            document: known.objects.len(),
            items: Vec::new(),
            line: 1,
            says_namespace: false,
        });
    }
    index
}

#[test]
fn new_objects_go_where_their_neighbours_lie() {
    let (pins, releases) = ("openchoreo.dev/releasepins", "openchoreo.dev/releases");
    let pin = json!({"kind": "ReleasePin", "metadata": {"name": "cart-prod"}, "spec": {"component": "cart", "environment": "prod"}});
    let release = json!({"kind": "Release", "metadata": {"name": "cart-v2"}, "spec": {"component": {"name": "cart"}}});
    let none = Layout::default();
    for (files, object, resource, expected) in [
        (&[][..], &pin, pins, "releasepins/prod/cart.yaml"),
        (&[], &release, releases, "releases/cart/cart-v2.yaml"),
        // An object in the same environment is more similar than an object of the same component.
        (
            &[
                ("envs/prod/mail.yaml", pins, "mail-prod"),
                ("envs/dev/cart.yaml", pins, "cart-dev"),
            ],
            &pin,
            pins,
            "envs/prod/cart.yaml",
        ),
        (
            &[("envs/dev/cart.yaml", pins, "cart-dev")],
            &pin,
            pins,
            "envs/prod/cart.yaml",
        ),
        (
            &[("pins/mail-dev.yaml", pins, "mail-dev")],
            &pin,
            pins,
            "pins/cart-prod.yaml",
        ),
        (
            &[
                ("cart/lock/cart-v1.yaml", releases, "cart-v1"),
                ("mail/lock/mail-v1.yaml", releases, "mail-v1"),
            ],
            &release,
            releases,
            "cart/lock/cart-v2.yaml",
        ),
        // If the similar object is in a file with several objects, the new object goes into that file.
        (
            &[
                ("all.yaml", releases, "cart-v0"),
                ("all.yaml", releases, "cart-v1"),
            ],
            &release,
            releases,
            "all.yaml",
        ),
    ] {
        let found = choose(&none, &index(files), "", resource, object);
        assert_eq!(found.as_deref(), Ok(expected), "{files:?}");
    }
    let layout = Layout(
        [(
            "Release".to_owned(),
            "lock/{component}/{name}.yaml".to_owned(),
        )]
        .into(),
    );
    let found = choose(&layout, &index(&[]), "deploy", releases, &release);
    assert_eq!(found.as_deref(), Ok("deploy/lock/cart/cart-v2.yaml"));
}

#[test]
fn no_word_of_an_object_leads_somewhere_else() {
    let layout = |path: &str| Layout([("ReleasePin".to_owned(), path.to_owned())].into());
    let pin = |component: &str, environment: &str| json!({"kind": "ReleasePin", "metadata": {"name": "x"}, "spec": {"component": component, "environment": environment}});
    let neighbour = index(&[(
        "pins/dev/mail.yaml",
        "openchoreo.dev/releasepins",
        "mail-dev",
    )]);
    for (component, environment, expected) in [
        ("..", "dev", Err("component")),
        ("cart", "../../victim", Err("environment")),
        ("cart", "..", Err("environment")),
        ("cart", ".", Err("environment")),
        ("cart", ".Git", Err("environment")),
        ("cart", "/etc", Err("environment")),
        ("cart", "a\\b", Err("environment")),
        ("cart", "a\0b", Err("environment")),
        ("cart", "a\nb", Err("environment")),
        ("cart", "a..b", Ok(())),
        ("cart", "...", Ok(())),
    ] {
        let pin = pin(component, environment);
        for (layout, index) in [
            (Layout::default(), &Index::default()),
            (Layout::default(), &neighbour),
            (layout("{environment}/{component}.yaml"), &neighbour),
        ] {
            let found = choose(&layout, index, "", "openchoreo.dev/releasepins", &pin);
            let found = found.map(drop).map_err(|bad| bad.what);
            assert_eq!(found, expected, "{component:?} {environment:?}");
        }
    }
    // The path in the layout needs a field that the object does not have, so the object is refused.
    let settings = json!({"kind": "ReleasePin", "metadata": {"name": "x"}});
    let found = choose(
        &layout("{environment}/{name}.yaml"),
        &Index::default(),
        "",
        "openchoreo.dev/releasepins",
        &settings,
    );
    assert_eq!(found.unwrap_err().what, "environment");
}

#[test]
fn a_long_name_is_cut_to_what_file_systems_take() {
    for letter in ["a", "漢"] {
        let name = letter.repeat(300);
        let pin = json!({"kind": "ReleasePin", "metadata": {"name": name}, "spec": {"component": name, "environment": "dev"}});
        let found = choose(
            &Layout::default(),
            &Index::default(),
            "",
            "openchoreo.dev/releasepins",
            &pin,
        );
        let found = found.unwrap();
        let file = found.strip_prefix("releasepins/dev/").unwrap();
        assert!(file.len() <= 255 && file.starts_with(letter), "{file}");
    }
}

#[test]
fn a_file_of_one_release_is_known_by_its_lines() {
    for (text, expected) in [
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\nspec: {}\n",
            true,
        ),
        (
            "---\n# x\nkind: Release\r\napiVersion: openchoreo.dev/v1alpha1\r\nspec:\n  kind: Workload\n  apiVersion: v1\n",
            true,
        ),
        // The group core.choreo.dev also has a kind `Release`, which is another kind (the RenderedRelease).
        ("apiVersion: core.choreo.dev/v1\nkind: Release\n", false),
        ("apiVersion: openchoreo.dev.com/v1\nkind: Release\n", false),
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: Release # of cart\n",
            false,
        ),
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\n",
            false,
        ),
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\n---\nkind: ReleasePin\n",
            false,
        ),
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\n---\n{kind: ReleasePin}\n",
            false,
        ),
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\n...\n{kind: ReleasePin}\n",
            false,
        ),
        (
            "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\n---",
            false,
        ),
        ("kind: Release\n", false),
        ("{kind: Release}\n", false),
        ("# kind: Release\n", false),
        ("", false),
    ] {
        assert_eq!(is_a_release(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn work_is_shared_out_and_keeps_its_order() {
    for count in [0, 1, 127, 128, 129, 5000] {
        let done = on_every_core((0..count).collect(), |number: usize| number * 2);
        let expected: Vec<usize> = (0..count).map(|number| number * 2).collect();
        assert_eq!(done, expected);
    }
}
