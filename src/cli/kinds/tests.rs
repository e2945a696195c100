use super::*;

#[test]
fn our_kinds_go_by_many_names_and_none_is_ambiguous() {
    let ours = ours();
    for (said, means) in [
        ("release", "releases.openchoreo.dev"),
        ("releases", "releases.openchoreo.dev"),
        ("rel", "releases.openchoreo.dev"),
        ("release.openchoreo.dev", "releases.openchoreo.dev"),
        (
            "releases.v1alpha1.openchoreo.dev",
            "releases.openchoreo.dev",
        ),
        ("rr", "releases.core.choreo.dev"),
        ("renderedrelease", "releases.core.choreo.dev"),
        ("renderedreleases", "releases.core.choreo.dev"),
        ("release.core.choreo.dev", "releases.core.choreo.dev"),
        ("releases.v1.core.choreo.dev", "releases.core.choreo.dev"),
        ("pin", "releasepins.openchoreo.dev"),
        ("pins", "releasepins.openchoreo.dev"),
        ("releasepin", "releasepins.openchoreo.dev"),
        ("comp", "components.openchoreo.dev"),
        ("components", "components.openchoreo.dev"),
        ("ctd", "componenttypedefinitions.openchoreo.dev"),
        ("addon", "addons.openchoreo.dev"),
        ("wl", "workloads.openchoreo.dev"),
        ("envsettings", "envsettings.openchoreo.dev"),
        ("env", "environments.openchoreo.dev"),
        ("envs", "environments.openchoreo.dev"),
        ("dp", "dataplanes.openchoreo.dev"),
        ("deppipe", "deploymentpipelines.openchoreo.dev"),
        ("ces", "componentenvsnapshots.openchoreo.dev"),
        ("audit", "auditentries.bowline.dev"),
        ("auditentries", "auditentries.bowline.dev"),
    ] {
        let found = ours.iter().find(|known| known.goes_by(said)).unwrap();
        let resource = &found.kind.resource;
        assert_eq!(
            format!("{}.{}", resource.plural, resource.group),
            means,
            "{said}"
        );
        assert!(found.kind.namespaced);
    }
    for said in [
        "deploy",
        "release.apps",
        "releases.v2.openchoreo.dev",
        "",
        ".",
    ] {
        assert!(!ours.iter().any(|known| known.goes_by(said)), "{said}");
    }
    let mut names = BTreeMap::new();
    for known in &ours {
        for name in known
            .names
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
        {
            let shared = names.insert(name, known.kind.label());
            let both = ["release", "releases"].contains(&name.as_str());
            assert!(shared.is_none() || both, "{name}");
        }
    }
}

#[test]
fn discovered_kinds_go_by_the_names_of_the_server() {
    let resource = |name: &str, verb: &str| APIResource {
        name: name.to_owned(),
        kind: "Pod".to_owned(),
        singular_name: "pod".to_owned(),
        namespaced: true,
        short_names: Some(vec!["po".to_owned()]),
        verbs: vec![verb.to_owned()],
        ..APIResource::default()
    };
    let pod = discovered("v1", resource("pods", "list")).unwrap();
    for said in ["pod", "pods", "po", "pods.v1."] {
        assert!(pod.goes_by(said), "{said}");
    }
    assert_eq!(pod.kind.label(), "pod");
    assert!(!pod.goes_by("pods.apps"));
    assert!(discovered("v1", resource("pods/log", "get")).is_none());
    assert!(discovered("v1", resource("bindings", "create")).is_none());
}

#[test]
fn words_name_kinds_and_objects() {
    let parse = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let wanted = objects_of(&words).map_err(|error| error.exit)?;
        let text = |(kind, names): (String, Vec<String>)| format!("{kind}:{}", names.join("+"));
        Ok(wanted.into_iter().map(text).collect::<Vec<_>>().join(" "))
    };
    for (words, wanted) in [
        (&["pins"][..], Ok("pins:")),
        (&["pins,releases"], Ok("pins: releases:")),
        (&["pin", "a", "b"], Ok("pin:a+b")),
        (&["pin/a", "pin/b", "rel/c"], Ok("pin:a+b rel:c")),
        (&["pin/a", "b"], Err(Exit::Usage)),
        (&["pin/../x"], Err(Exit::Usage)),
        (&["pin/"], Err(Exit::Usage)),
        (&["/a"], Err(Exit::Usage)),
        (&[","], Err(Exit::Usage)),
        (&["pin", "a?watch=1"], Err(Exit::Usage)),
        (&["pin", ".."], Err(Exit::Usage)),
        (
            &["clusterrole", "system:view"],
            Ok("clusterrole:system:view"),
        ),
    ] {
        assert_eq!(parse(words), wanted.map(str::to_owned), "{words:?}");
    }
}

#[test]
fn the_most_alike_come_first() {
    let names = ["frontend", "cart-eu", "checkout", "cart"].map(str::to_owned);
    assert_eq!(near("crat", names.to_vec())[0], "cart");
    assert_eq!(near("front-end", names.to_vec())[0], "frontend");
    let many = || (0..30).map(|n| format!("release-{n}")).collect();
    assert_eq!(near("release-x", many()).len(), MANY);
    assert!(near("x", many()).is_empty());
}
