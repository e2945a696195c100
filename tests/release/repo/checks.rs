//! `bowline check`, as a pull request runs it.

use super::{Shop, pin, release};

#[test]
fn a_change_is_held_to_the_rules_and_its_promotion_is_printed() {
    let shop = Shop::open(&["cart"]);
    shop.ends("check", 0, "holds together");
    let base = shop.head();
    let check = format!("check --base {base}");
    shop.ends(&check, 0, "");

    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-2"));
    shop.commit("promote by hand");
    let ran = shop.ends(&check, 0, "cart in staging: cart-1 -> cart-2");
    assert!(ran.out.contains("shop/cart:2"), "{}", ran.out);

    // Past the path, onto what is not there, onto what is bad, over a hold.
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-3"));
    shop.ends(
        &check,
        5,
        "cart-3 runs in no environment that promotes to prod",
    );
    shop.write("pins/prod/cart.yaml", &pin("cart", "prod", "cart-9"));
    shop.ends(&check, 1, "names release cart-9, which is not there");
    shop.git("checkout -q .");
    shop.ends("mark bad cart-2 --reason leaks --yes", 0, "");
    shop.ends(&check, 5, "release cart-2 is marked bad");
    shop.ends("mark good cart-2 --yes", 0, "");
    shop.ends("pin cart -e prod --reason freeze --yes", 0, "");
    let held = shop.head();
    let text = shop
        .read("pins/prod/cart.yaml")
        .replace("name: cart-1", "name: cart-2");
    shop.write("pins/prod/cart.yaml", &text);
    shop.ends(
        &format!("check --base {held}"),
        5,
        "prod holds cart at cart-1",
    );
    shop.git("checkout -q .");

    // What does not hold together.
    shop.write("releases/cart/cart-4.yaml", &release("mail", 4));
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "mail-4"));
    shop.ends("check", 1, "a release of mail");
    shop.git("checkout -q .");
    std::fs::remove_file(shop.root.join("releases/cart/cart-4.yaml")).unwrap();
    // Settings that no longer fit what is promoted.
    shop.write("settings.yaml", "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {name: cart-staging, namespace: shop}\nspec: {owner: {componentName: cart}, environment: staging, overrides: {replicas: many}}\n");
    let strict = release("cart", 5).replace("workloadType: deployment\n", "workloadType: deployment\n        schema: {parameters: {replicas: \"integer | default=1\"}}\n");
    shop.write("releases/cart/cart-5.yaml", &strict);
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "cart-5"));
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-5"));
    shop.commit("does not fit");
    shop.ends(
        &format!("check --base {held}"),
        5,
        "cart-5 does not fit staging",
    );
    shop.ends("check --base nowhere", 2, "names no commit");
}

#[test]
fn the_example_repository_passes() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/gitops");
    let shop = Shop::empty();
    let copied = std::process::Command::new("cp")
        .args(["-r", &format!("{}/.", example.display())])
        .arg(&shop.root)
        .status()
        .unwrap();
    assert!(copied.success());
    shop.commit("the example");
    let ran = shop.ends("check", 0, "holds together");
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    shop.ends("status", 0, "checkout");
    shop.ends(
        "promote checkout --from staging --to production --reason the-example --yes",
        0,
        "checkout in production",
    );
    assert_eq!(shop.numstat().len(), 1);
    assert_eq!((shop.numstat()[0].1, shop.numstat()[0].2), (1, 1));
}
