//! Tests with files in all forms that Kubernetes tools accept: lists, JSON, unusual file names, an object in
//! two files.

use super::{Shop, pin, release};

const GC: &str = "gc --keep 1 --min-age 0s --confirm";
const PROMOTE: &str = "promote cart --from staging --to prod --yes";

/// Returns a shop without the file of production's ReleasePin, because each test writes this file in its own
/// form. No other environment runs cart-1.
fn shop() -> Shop {
    let shop = Shop::open(&["cart"]);
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-2"));
    shop.git("rm -q pins/prod/cart.yaml");
    shop.commit("without production");
    shop
}

fn indented(text: &str, by: &str) -> String {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| match at {
            0 => format!("{line}\n"),
            _ => format!("{by}{line}\n"),
        })
        .collect()
}

/// Returns the YAML of production's ReleasePin without comments, to put it into a list.
fn plain_pin() -> String {
    let text = pin("cart", "prod", "cart-1");
    let text = text.lines().filter(|line| !line.starts_with('#'));
    text.map(|line| format!("{line}\n")).collect()
}

fn json_pin() -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
        "metadata": {
            "name": "cart-prod", "namespace": "shop",
            "labels": {"openchoreo.dev/component": "cart", "openchoreo.dev/environment": "prod"},
        },
        "spec": {"component": "cart", "environment": "prod", "releaseRef": {"name": "cart-1"}},
    })
}

/// Returns the ReleasePin of production in every form. Each element is the path and the text of a file.
fn forms() -> Vec<(&'static str, String)> {
    let item = indented(&plain_pin(), "    ");
    let bare = item.replace(
        "apiVersion: openchoreo.dev/v1alpha1\n    kind: ReleasePin\n    ",
        "",
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    let json = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap() + "\n";
    let compact = json_pin().to_string();
    let in_list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, json_pin()]});
    let tabs = json(json_pin()).replace("  ", "\t");
    vec![
        (
            "all.yaml",
            format!("apiVersion: v1\nkind: List\nitems:\n  # the ReleasePin\n  - {item}"),
        ),
        (
            "all.yml",
            format!("{map}---\napiVersion: v1\nkind: List\nitems:\n  - {item}---\n{map}"),
        ),
        (
            "pins.YAML",
            format!(
                "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePinList\nitems:\n  - {bare}"
            ),
        ),
        (
            "crlf.yaml",
            format!("\u{feff}apiVersion: v1\nkind: List\nitems:\n  - {item}").replace('\n', "\r\n"),
        ),
        (
            "nested.yaml",
            format!(
                "kind: List\napiVersion: v1\nitems: [{{kind: List, apiVersion: v1, items: [{compact}]}}] # both\n"
            ),
        ),
        ("pin.json", json(json_pin())),
        ("tabs.json", tabs),
        ("list.JSON", json(in_list)),
        (
            "stream.json",
            format!(
                "{}\n{}\n",
                r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}"#, compact
            ),
        ),
        ("odd.yaml", pin("cart", "prod", "cart-1")),
    ]
}

#[test]
fn a_release_pin_is_read_and_moved_in_every_form() {
    for (path, text) in forms() {
        let shop = shop();
        shop.write(path, &text);
        shop.commit("the ReleasePin of production");
        shop.ends("check", 0, "no problems found");
        shop.ends(GC, 0, "");
        assert!(
            shop.root.join("releases/cart/cart-1.yaml").exists(),
            "{path}"
        );
        shop.ends(PROMOTE, 0, "cart in prod: cart-1 -> cart-2");
        assert_eq!(shop.read(path), text.replace("cart-1", "cart-2"), "{path}");
        assert_eq!(shop.numstat().len(), 1, "{path}");
        // After a hold is added and removed, the file has its old content.
        shop.ends("pin cart -e prod --reason freeze --yes", 0, "");
        shop.ends("check", 0, "no problems found");
        if path.to_lowercase().ends_with("json") {
            let text = shop.read(path);
            let read = serde_json::Deserializer::from_str(&text);
            let values = read.into_iter::<serde_json::Value>();
            assert!(
                values.into_iter().all(|value| value.is_ok()),
                "{}",
                shop.read(path)
            );
        }
        shop.ends("unpin cart -e prod --yes", 0, "");
        assert_eq!(shop.read(path), text.replace("cart-1", "cart-2"), "{path}");
        let history = shop.ends("history cart -e prod", 0, "cart-1");
        assert!(history.out.contains("cart-2"), "{path}: {}", history.out);
    }
}

#[test]
fn commits_of_every_form_are_verified_and_read_back_after_hooks() {
    for (path, text) in forms() {
        let shop = shop();
        shop.write(path, &text);
        shop.commit("the ReleasePin of production");
        shop.ends(PROMOTE, 0, "cart in prod: cart-1 -> cart-2");
        shop.ends("audit verify", 0, "valid");
        // A git hook moves the ReleasePin back.
        let script = format!("sed -i s/cart-3/cart-1/ {path}; git add {path}");
        shop.hook("pre-commit", &script);
        let (head, now) = (shop.head(), shop.read(path));
        shop.ends(
            "deploy cart -e prod --release cart-3 --skip-path --reason why --yes",
            1,
            &format!("{path} is not as bowline wrote it"),
        );
        assert_eq!(
            (shop.head(), shop.status()),
            (head, String::new()),
            "{path}"
        );
        assert_eq!(shop.read(path), now);
        // A git hook moves the ReleasePin of production in a commit about staging.
        let script = format!("sed -i s/cart-2/cart-1/ {path}; git add {path}");
        shop.hook("pre-commit", &script);
        shop.ends("promote cart --from dev --to staging --yes", 0, "");
        shop.ends(
            "rollback cart -e staging --to cart-1 --reason why --yes",
            1,
            &format!("it also changes {path}"),
        );
        assert_eq!(shop.read(path), now, "{path}");
        shop.ends("audit verify", 0, "valid");
    }
}

/// bowline does not read submodules, and no links that leave the work tree. They could contain ReleasePins,
/// so check fails and gc stops.
#[cfg(unix)]
#[test]
fn a_link_or_a_submodule_that_is_not_read_fails_check_and_stops_gc() {
    use std::os::unix::fs::symlink;
    let refused = |shop: &Shop, words: &str| {
        let head = shop.head();
        shop.ends("check", 1, words);
        shop.ends(GC, 5, words);
        assert_eq!((shop.head(), shop.status()), (head, String::new()));
    };
    let shop_with_prod_outside = || {
        let shop = shop();
        let outside = shop.place.path().join("outside");
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("prod.yaml"), plain_pin()).unwrap();
        (shop, outside)
    };
    let (shop, outside) = shop_with_prod_outside();
    symlink(outside.join("prod.yaml"), shop.root.join("prod.yaml")).unwrap();
    shop.ends("check", 1, "prod.yaml: it is a link to ");
    shop.commit("a link to a file");
    refused(&shop, "bowline does not follow links");

    let (shop, outside) = shop_with_prod_outside();
    symlink(&outside, shop.root.join("production")).unwrap();
    shop.ends("check", 1, "production: it is a link to ");
    shop.commit("a link to a directory");
    refused(&shop, "production: it is a link to ");

    // The file becomes a link, and then a file again.
    let (shop, outside) = shop_with_prod_outside();
    shop.write("prod.yaml", &plain_pin());
    shop.commit("a file");
    shop.ends("check", 0, "no problems found");
    std::fs::remove_file(shop.root.join("prod.yaml")).unwrap();
    symlink(outside.join("prod.yaml"), shop.root.join("prod.yaml")).unwrap();
    shop.ends("check", 1, "prod.yaml: it is a link to ");
    shop.git("checkout -q -- prod.yaml");
    shop.ends("check", 0, "no problems found");

    // bowline reads files behind links, if the targets are in the work tree.
    let shop = self::shop();
    shop.write("real/prod.yaml", &plain_pin());
    symlink("real/prod.yaml", shop.root.join("prod.yaml")).unwrap();
    symlink("real", shop.root.join("linked")).unwrap();
    symlink("/etc/hostname", shop.root.join("README")).unwrap();
    shop.commit("links to what is read");
    shop.ends("check", 0, "no problems found");
    shop.ends(GC, 0, "");
    shop.ends(PROMOTE, 0, "cart in prod: cart-1 -> cart-2");

    let shop = self::shop();
    let module = shop.place.path().join("module");
    shop.git_words(&["clone", "-q", ".", module.to_str().unwrap()]);
    shop.git_words(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        module.to_str().unwrap(),
        "vendor/module",
    ]);
    shop.commit("a submodule");
    refused(&shop, "vendor/module: it is a submodule");
}

#[test]
fn gc_refuses_while_a_release_pin_names_a_release_that_does_not_exist() {
    let shop = shop();
    shop.write(
        "pins/prod/cart.yaml",
        &pin("cart", "prod", "cart-1").replace("name: cart-1", "name: \"${RELEASE}\""),
    );
    shop.commit("substituted by Flux");
    let head = shop.head();
    let words = "ReleasePin cart-prod names release ${RELEASE}, which does not exist";
    shop.ends(GC, 5, words);
    shop.ends("gc --keep 1 --min-age 0s --dry-run", 5, words);
    let ran = shop.ends("check", 1, words);
    let place = "pins/prod/cart.yaml:2: ";
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains(place), "{said}");
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
}

#[test]
fn releases_are_collected_out_of_lists_and_what_is_left_stays_as_it_is() {
    let shop = Shop::open(&["cart"]);
    shop.git("rm -q -r releases");
    let list = |versions: &[u32]| -> String {
        let items = versions.iter().map(|version| {
            format!(
                "# release {version}\n- {}",
                indented(&release("cart", *version), "  ")
            )
        });
        format!(
            "apiVersion: v1\nkind: List\nitems:\n{}# end\n",
            items.collect::<String>()
        )
    };
    shop.write("releases.yaml", &list(&[1, 2, 3]));
    shop.write("alone.yaml", &list(&[4]));
    for environment in ["dev", "staging", "prod"] {
        shop.write(
            &format!("pins/{environment}/cart.yaml"),
            &pin("cart", environment, "cart-2"),
        );
    }
    shop.commit("releases in lists");
    shop.ends("check", 0, "no problems found");
    shop.ends("gc --keep 0 --min-age 0s --confirm", 0, "");
    assert_eq!(shop.status(), "");
    let left = shop.read("releases.yaml");
    assert!(
        left.contains("name: cart-2") && left.contains("# end"),
        "{left}"
    );
    assert!(
        !left.contains("name: cart-1\n") && !left.contains("name: cart-3\n"),
        "{left}"
    );
    assert!(!shop.root.join("alone.yaml").exists());
    shop.ends("check", 0, "no problems found");
}

#[test]
fn a_new_release_pin_goes_into_the_list_of_its_neighbours() {
    let shop = Shop::open(&["cart"]);
    shop.git("rm -q -r pins");
    let item = |environment: &str| {
        let mut pin = json_pin();
        pin["metadata"]["name"] = format!("cart-{environment}").into();
        pin["metadata"]["labels"]["openchoreo.dev/environment"] = environment.into();
        pin["spec"]["environment"] = environment.into();
        pin
    };
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [item("dev"), item("staging")]});
    let text = serde_json::to_string_pretty(&list).unwrap() + "\n";
    shop.write("pins.json", &text);
    shop.commit("a list");
    shop.ends(PROMOTE, 0, "cart in prod: nothing -> cart-1");
    let read: serde_json::Value = serde_json::from_str(&shop.read("pins.json")).unwrap();
    assert_eq!(read["items"].as_array().unwrap().len(), 3);
    assert_eq!(read["items"][2]["metadata"]["name"], "cart-prod");
    let (kept, end) = text.rsplit_once("\n  ]").unwrap();
    let now = shop.read("pins.json");
    assert!(now.starts_with(&format!("{kept},\n    {{\n")), "{now}");
    assert!(now.ends_with(&format!("    }}\n  ]{end}")), "{now}");
    shop.ends("check", 0, "no problems found");
}

#[test]
fn a_release_pin_in_two_places_is_a_problem_and_is_not_moved() {
    let item = indented(&plain_pin(), "    ");
    for (first, second) in [
        (pin("cart", "prod", "cart-1"), pin("cart", "prod", "cart-2")),
        (
            pin("cart", "prod", "cart-1"),
            format!("apiVersion: v1\nkind: List\nitems:\n  - {item}"),
        ),
        (pin("cart", "prod", "cart-1"), json_pin().to_string()),
    ] {
        let shop = shop();
        shop.write("a.yaml", &first);
        shop.write("b.yaml", &second);
        shop.commit("two of one");
        let head = shop.head();
        shop.ends("check", 1, "releasepins cart-prod is in a.yaml:");
        shop.ends(GC, 5, "is in a.yaml:");
        shop.ends(PROMOTE, 5, "cart-prod is in a.yaml:");
        assert_eq!((shop.head(), shop.status()), (head, String::new()));
    }
}

#[test]
fn content_that_bowline_does_not_understand_fails_check_and_stops_gc() {
    let text = plain_pin();
    for (path, content, words) in [
        (
            "beta.yaml",
            text.replace("v1alpha1", "v1beta1"),
            "beta.yaml:1: bowline does not know the kind ReleasePin of openchoreo.dev/v1beta1",
        ),
        (
            "list.yaml",
            format!("kind: List\napiVersion: v1\nitems:\n- apiVersion: openchoreo.dev/v1alpha1\n  kind: Pin\n{}", ""),
            "list.yaml:4: bowline does not know the kind Pin",
        ),
        (
            "configmap.yaml",
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: pins}}\ndata:\n  pin.yaml: |\n    {}", indented(&text, "    ")),
            "configmap.yaml:1: ConfigMap pins contains a ReleasePin",
        ),
        (
            "broken.json",
            text.clone() + "}",
            "broken.json:",
        ),
        (
            "pins.jsonnet",
            "{ apiVersion: 'openchoreo.dev/v1alpha1', kind: 'ReleasePin' }\n".to_owned(),
            "pins.jsonnet: a template makes a ReleasePin",
        ),
        (
            "kustomization.yaml",
            "resources: [pins/dev/cart.yaml]\npatches:\n- target: {kind: ReleasePin}\n  patch: '[{op: replace, path: /spec/releaseRef/name, value: cart-1}]'\n".to_owned(),
            "kustomization.yaml:1: a patch changes a ReleasePin",
        ),
        (
            "kustomization.yaml",
            "resources: [pins/dev/cart.yaml]\npatches:\n- path: patch.txt\n  target: {name: cart-dev}\n".to_owned(),
            "kustomization.yaml:1: a patch changes a ReleasePin or may select one",
        ),
        (
            "replacement.yaml",
            "source: {kind: ConfigMap, name: x, fieldPath: data.release}\ntargets:\n- select: {name: cart-dev}\n  fieldPaths: [spec.releaseRef.name]\n".to_owned(),
            "replacement.yaml:1: a patch changes a ReleasePin or may select one",
        ),
        (
            "kustomization.yaml",
            "resources: [pins/dev/cart.yaml]\nnamePrefix: shop-\n".to_owned(),
            "kustomization.yaml: it gives other names to the objects of pins/dev/cart.yaml",
        ),
    ] {
        let shop = shop();
        shop.ends("check", 0, "no problems found");
        shop.write(path, &content);
        shop.commit("something else");
        let head = shop.head();
        shop.ends("check", 1, words);
        shop.ends(GC, 5, words);
        assert_eq!((shop.head(), shop.status()), (head, String::new()), "{path}");
    }
    // A kustomization can name a file with any extension, which bowline does not read.
    let shop = shop();
    shop.write("prod.txt", &text);
    shop.write("kustomization.yaml", "resources: [prod.txt]\n");
    shop.commit("an odd name");
    let words =
        "prod.txt: a kustomization names it, and bowline does not read a file with such a name";
    shop.ends("check", 1, words);
    shop.ends(GC, 5, words);
}

#[test]
fn a_release_pin_that_cannot_be_read_is_not_written_once_more() {
    let shop = shop();
    let broken = plain_pin() + "---\nkind: ConfigMap\nmode: 0644\n";
    shop.write("elsewhere/of-production.yaml", &broken);
    shop.commit("something beside it");
    let head = shop.head();
    let words = "cannot add ReleasePin cart-prod: elsewhere/of-production.yaml may contain it";
    shop.ends(PROMOTE, 5, words);
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
}

#[test]
fn names_of_files_do_not_steer_the_terminal() {
    let shop = Shop::open(&["cart"]);
    let folder = "pins/\u{1b}]0;owned\u{7}\u{1b}[31m\u{202e}x\u{9b}2J\nrefused: nothing";
    shop.write(
        &format!("{folder}/again.yaml"),
        &pin("cart", "prod", "cart-9"),
    );
    shop.write(
        &format!("{folder}/broken.yaml"),
        "apiVersion: openchoreo.dev/v1alpha1\nkind: [x\n",
    );
    shop.write(
        &format!("{folder}/labels.yaml"),
        &pin("mail", "qa", "mail-1").replace("component: mail\n    ", "component: x\n    "),
    );
    shop.commit("hostile names");
    let base = shop.git("rev-parse HEAD~1");
    for line in [
        "check".to_owned(),
        format!("check --base {base}"),
        "status".to_owned(),
        "status -o yaml".to_owned(),
        GC.to_owned(),
        PROMOTE.to_owned(),
    ] {
        let ran = shop.run(&line);
        let said = format!("{}{}", ran.out, ran.err);
        let steers =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!said.contains(steers), "{line}: {said:?}");
        assert!(
            !said
                .lines()
                .any(|line| line.starts_with("refused: nothing")),
            "{line}: {said}"
        );
    }
    shop.ends("check", 1, "wrong: ");
}
