//! Where new objects go: nowhere that they would not be seen again, and nowhere outside.

use super::Shop;

/// Runs what would make a new object: it is refused, each time, and leaves nothing.
fn refused(shop: &Shop, line: &str, code: i32, words: &str) {
    let (head, status) = (shop.head(), shop.status());
    for _ in 0..2 {
        shop.ends(line, code, words);
        assert_eq!((shop.head(), shop.status()), (head.clone(), status.clone()));
    }
}

fn settings(name: &str, environment: &str, more: &str) -> String {
    format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{owner: {{componentName: cart}}, environment: {environment:?}{more}}}\n"
    )
}

#[test]
fn no_word_of_an_object_leads_out_of_the_work_tree() {
    let shop = Shop::open(&["cart"]);
    let victim = shop.place.path().join("victim/cart.yaml");
    std::fs::create_dir_all(victim.parent().unwrap()).unwrap();
    std::fs::write(&victim, "keep: me\n").unwrap();
    let wanted = shop.place.path().join("wanted.yaml");
    std::fs::write(&wanted, settings("evil", "../../victim", "")).unwrap();
    let apply = format!("apply -f {}", wanted.display());
    refused(
        &shop,
        &apply,
        1,
        "its environment is \"../../victim\", which cannot be part of a file's path",
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "keep: me\n");
}
