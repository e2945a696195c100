//! Two hundred files have different YAML styles. A promotion must change only one line of each file.

use super::{Shop, environments, release};

/// Returns the text of a ReleasePin in one of many YAML styles. Also returns whether bowline can edit this
/// style.
fn odd(number: usize) -> (String, bool) {
    let name = format!("c{number}");
    let (style, rest) = (number % 10, number / 10);
    let pad = " ".repeat(1 + rest % 5);
    let value = match style {
        0 => format!("{name}-1"),
        1 => format!("\"{name}-1\""),
        2 => format!("'{name}-1'"),
        3 => format!("&rel {name}-1"),
        4 => format!("{name}-1 # a\ttab, and: more"),
        5 => format!(">-\n{pad}{pad}{pad}{name}-1"),
        6 => format!("!!str {name}-1"),
        _ => format!("{name}-1"),
    };
    let labels =
        format!("{{openchoreo.dev/component: {name}, openchoreo.dev/environment: staging}}");
    let mut text = match style {
        7 => format!(
            "{{apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, metadata: {{name: {name}-staging, labels: {labels}}},\n  spec: {{component: {name}, environment: staging, # here\n    releaseRef: {{name: {value}}}}}}}\n"
        ),
        8 => format!(
            "%YAML 1.2\n---\napiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata:\n{pad}name: {name}-staging\n{pad}labels: {labels}\nspec:\n{pad}releaseRef: {{ name: {value} }}   # flow\n{pad}component: {name}\n{pad}environment: staging\n"
        ),
        _ => format!(
            "# The pin of {name}\n#\tmoved: by hand\nspec:\n{pad}# releaseRef: {{name: wrong}}\n{pad}component: {name}\n{pad}environment: staging\n{pad}releaseRef:\n{pad}{pad}name: {value}\n\nmetadata:\n{pad}name:   {name}-staging\n{pad}labels: {labels}\n{pad}annotations:\n{pad}{pad}notes: |\n{pad}{pad}{pad}releaseRef:\n{pad}{pad}{pad}  name: {name}-1\n\n{pad}{pad}{pad}# no comment\n\nkind: ReleasePin\napiVersion: openchoreo.dev/v1alpha1\n"
        ),
    };
    let mut editable = true;
    // bowline cannot edit an alias, because that would also change its anchor.
    if style == 9 {
        text = text.replace(&format!("name: {value}\n\nmeta"), "name: *rel\n\nmeta");
        text = format!("x-release: &rel {name}-1\n{text}");
        editable = false;
    }
    if rest % 4 == 1 && style != 8 {
        text = format!(
            "# a file of several\n---\nkind: ConfigMap\napiVersion: v1\ndata: {{name: {name}-1}}\n---\n{text}---\n# nothing\n"
        );
    }
    if rest % 4 == 2 {
        text = text.replace('\n', "\r\n");
    }
    if rest % 4 == 3 {
        text = text.trim_end().to_owned();
    }
    (text, editable)
}

#[test]
fn a_promotion_of_what_people_wrote_changes_one_line() {
    let shop = Shop::empty();
    shop.write(
        "environments.yaml",
        &environments()
            .replace("  namespace: shop\n", "")
            .replace(", namespace: shop", ""),
    );
    let mut files = Vec::new();
    for number in 0..200 {
        let (text, editable) = odd(number);
        let file = format!("odd/{number}/pin.yaml");
        shop.write(&file, &text);
        let name = format!("c{number}");
        for version in [1, 2] {
            let text = release(&name, version).replace("  namespace: shop\n", "");
            shop.write(&format!("releases/{name}-{version}.yaml"), &text);
        }
        let dev = super::pin(&name, "dev", &format!("{name}-2")).replace("  namespace: shop\n", "");
        shop.write(&format!("dev/{name}.yaml"), &dev);
        files.push((name, file, text, editable));
    }
    shop.commit("as people wrote them");
    // One command promotes all editable files, so that the program starts once and not two hundred times.
    let (editable, others): (Vec<_>, Vec<_>) = files.iter().partition(|(.., editable)| *editable);
    assert_eq!((editable.len(), others.len()), (180, 20));
    let names: Vec<&str> = editable.iter().map(|(name, ..)| name.as_str()).collect();
    shop.ends(
        &format!("promote {} --from dev --to staging", names.join(" ")),
        0,
        "c0 in staging",
    );
    let stat = shop.numstat();
    assert_eq!(stat.len(), 180);
    for (file, added, removed) in &stat {
        assert_eq!((*added, *removed), (1, 1), "{file}");
    }
    for (name, file, before, _) in &editable {
        let after = std::fs::read(shop.root.join(file)).unwrap();
        let after = String::from_utf8(after).unwrap();
        // Only the line with the reference changed, and only in one character.
        let differing: Vec<(&str, &str)> = before
            .split('\n')
            .zip(after.split('\n'))
            .filter(|(one, other)| one != other)
            .collect();
        let [(one, other)] = differing.as_slice() else {
            panic!("{file}: {differing:?}");
        };
        assert_eq!(
            one.replace(&format!("{name}-1"), &format!("{name}-2")),
            *other,
            "{file}"
        );
        assert_eq!(before.split('\n').count(), after.split('\n').count());
    }
    // bowline refuses to edit the other files, with the reason, and does not change them.
    let head = shop.head();
    for (name, file, before, _) in &others {
        shop.ends(
            &format!("promote {name} --from dev --to staging"),
            5,
            "alias",
        );
        assert_eq!(
            std::fs::read_to_string(shop.root.join(file)).unwrap(),
            **before
        );
    }
    assert_eq!((shop.head(), shop.status()), (head, String::new()));
    println!(
        "{} files: {} promoted with 1 line added and 1 removed each, {} refused",
        files.len(),
        editable.len(),
        others.len()
    );
}
