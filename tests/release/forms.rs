//! A release can contain its definitions in four forms: as git references, embedded, compressed, or mixed.
//! With equal definitions, all forms must give equal manifests.

use std::fs;

use bowline::api::openchoreo::release::{Content, GitRef, Release, ReleaseSpec};
use bowline::api::{Definitions, labels};
use bowline::resolve::content::{PACK_OVER, unpack};
use bowline::resolve::resolve;
use bowline::subjects::release_pin::actions::release::{
    GitSources, Source, contents_mut, plain_spec, release, size,
};
use kube::ResourceExt;

use crate::example::{catalog, directory};
use crate::git::Place;
use crate::git::repository::Repository;

const COMPONENT: &str = "checkout-service";

/// Creates a git repository with the files of the example. Returns the git references to the definitions in
/// it.
fn in_git(place: &Place, definitions: &Definitions) -> GitSources {
    let repository = Repository::new(place.path("platform.git"));
    let catalog = catalog();
    let root = directory();
    let mut files = Vec::new();
    let mut path_of = |kind: &str, name: &str| {
        let file = catalog.file(kind, name).unwrap().to_owned();
        let path = file.strip_prefix(root.to_str().unwrap()).unwrap();
        let path = path.trim_start_matches('/').to_owned();
        files.push((path.clone(), fs::read(&file).unwrap()));
        path
    };
    let component = path_of("Component", COMPONENT);
    let type_ = path_of(
        "ComponentTypeDefinition",
        &definitions.component_type_definition.name_any(),
    );
    let addons: Vec<_> = definitions
        .addons
        .iter()
        .map(|addon| path_of("Addon", &addon.name))
        .collect();
    let written: Vec<_> = files
        .iter()
        .map(|(path, bytes)| ("100644", path.as_str(), bytes.as_slice()))
        .collect();
    let revision = repository.commit(&written);
    let reference = |path: String| GitRef {
        repository: repository.url(),
        revision: revision.clone(),
        path,
    };
    GitSources {
        component: reference(component),
        component_type_definition: reference(type_),
        addons: addons.into_iter().map(reference).collect(),
    }
}

fn stored(release: &Release) -> usize {
    serde_json::to_vec(release).unwrap().len()
}

/// Returns releases with the same definitions, one per form. The text names the form.
fn forms(place: &Place, definitions: &Definitions) -> Vec<(&'static str, Release)> {
    let git = in_git(place, definitions);
    let packed = release(definitions, Some("v1.2.3"), &Source::Embedded);
    let mut plain = packed.clone();
    plain.spec = plain_spec(definitions);
    let by_git = release(definitions, Some("v1.2.3"), &Source::Git(Box::new(git)));
    let mut mixed = by_git.clone();
    mixed.spec = ReleaseSpec {
        component: plain.spec.component.clone(),
        component_type_definition: packed.spec.component_type_definition.clone(),
        ..by_git.spec.clone()
    };
    vec![
        ("git", by_git),
        ("embedded", plain),
        ("compressed", packed),
        ("mixed", mixed),
    ]
}

#[tokio::test]
async fn all_forms_give_the_same_snapshot() {
    let definitions = catalog().definitions(COMPONENT).unwrap();
    let place = Place::new();
    let git = place.git();
    let forms = forms(&place, &definitions);
    for (form, release) in &forms {
        let resolved = resolve(&release.spec, &git).await.unwrap();
        assert_eq!(resolved.definitions, definitions, "{form}");
        assert_eq!(
            resolved.definitions.content_hash(),
            definitions.content_hash(),
            "{form}"
        );
        assert_eq!(resolved.warnings, [""; 0], "{form}");
    }
    let size_of = |wanted: &str| {
        let found = forms.iter().find(|(form, _)| *form == wanted);
        stored(&found.unwrap().1)
    };
    let (git, embedded, compressed) = (size_of("git"), size_of("embedded"), size_of("compressed"));
    let saved = |stored: usize, plain: usize| 100 - stored * 100 / plain;
    println!(
        "release of {COMPONENT}, bytes: git {git}, embedded {embedded}, compressed {compressed} ({} % saved), mixed {}",
        saved(compressed, embedded),
        size_of("mixed"),
    );
    // Measures only the compressed content, because small content stays uncompressed.
    let (mut packed, mut plain) = (0, 0);
    let (_, release) = forms
        .iter()
        .find(|(form, _)| *form == "compressed")
        .unwrap();
    for content in contents_mut(&mut release.spec.clone()) {
        if let Some(text) = content.compressed() {
            packed += text.len();
            plain += serde_json::to_vec(&unpack(content).unwrap()).unwrap().len();
        }
    }
    let saved = saved(packed, plain);
    println!("its packed content, bytes: {plain} stored in {packed} ({saved} % saved)");
    assert!((2_000..=5_000).contains(&git), "{git}");
    assert!(embedded > PACK_OVER, "{embedded}");
    assert!((60..=90).contains(&saved), "{saved} % saved");
}

#[tokio::test]
async fn a_release_says_in_its_metadata_what_lists_show() {
    let definitions = catalog().definitions(COMPONENT).unwrap();
    let made = release(&definitions, Some("1.2.3+build.5"), &Source::Embedded);
    assert_eq!(made.name_any(), "checkout-service-1.2.3-build.5");
    assert_eq!(made.labels()[labels::COMPONENT], COMPONENT);
    assert!(!made.labels().contains_key(labels::VERSION));
    let annotations = made.annotations();
    assert_eq!(annotations[labels::VERSION_TEXT], "1.2.3+build.5");
    assert_eq!(
        annotations[labels::CONTENT_HASH],
        definitions.content_hash()
    );
    assert_eq!(annotations[labels::SIZE], size(&made.spec).to_string());
    assert_eq!(annotations[labels::COMPRESSION], "gzip");
    assert_eq!(annotations[labels::IMAGES], definitions.images().join(","));
    assert!(!annotations[labels::IMAGES].is_empty());
    let named = release(&definitions, None, &Source::Embedded);
    let hash = definitions.content_hash();
    assert_eq!(named.name_any(), format!("{COMPONENT}-{}", &hash[..10]));
    assert_eq!(named.spec, made.spec);
}

#[tokio::test]
async fn what_does_not_belong_together_is_refused() {
    let definitions = catalog().definitions(COMPONENT).unwrap();
    let place = Place::new();
    let git = place.git();
    let plain = plain_spec(&definitions);
    let broken = |change: &dyn Fn(&mut ReleaseSpec)| {
        let mut spec = plain.clone();
        change(&mut spec);
        spec
    };
    let table = [
        (
            broken(&|spec| spec.component.name = "cart".into()),
            "component cart: its name is \"checkout-service\"",
        ),
        (
            broken(&|spec| spec.component.content = None),
            "component checkout-service: a reference must have exactly one of gitRef and content",
        ),
        (
            broken(&|spec| spec.component.content = spec.component_type_definition.content.clone()),
            "expected Component of openchoreo.dev/v1alpha1",
        ),
        (
            broken(&|spec| {
                spec.component_type_definition.content = Some(Content::from_compressed("H4sI"));
            }),
            "type web-app: `compressed` is not",
        ),
        (
            broken(&|spec| spec.addons.clear()),
            "component checkout-service uses addon",
        ),
        (
            broken(&|spec| {
                let content = spec.component.content.as_mut().unwrap();
                let inner = content.0.get_mut("spec").unwrap().as_object_mut().unwrap();
                inner.insert("componentType".into(), "deployment/other".into());
            }),
            "is of type \"deployment/other\", and the definition is \"deployment/web-app\"",
        ),
        (
            broken(&|spec| {
                spec.workload.insert("kind".into(), "Pod".into());
            }),
            "workload checkout-service: expected Workload of openchoreo.dev/v1alpha1, found \"Pod\"",
        ),
        (
            broken(&|spec| {
                spec.component.content = None;
                spec.component.git_ref = Some(GitRef {
                    repository: "https://git.example.com/x".into(),
                    revision: "main".into(),
                    path: "a.yaml".into(),
                });
            }),
            "component checkout-service: ",
        ),
    ];
    for (spec, expected) in table {
        let error = resolve(&spec, &git).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error} has no {expected:?}");
    }
}

#[tokio::test]
async fn a_file_with_several_objects_is_searched() {
    let definitions = catalog().definitions(COMPONENT).unwrap();
    let place = Place::new();
    let repository = Repository::new(place.path("all.git"));
    let plain = plain_spec(&definitions);
    let mut text = "# Everything in one file.\n".to_owned();
    for content in [
        &plain.component.content,
        &plain.component_type_definition.content,
    ]
    .into_iter()
    .chain(plain.addons.iter().map(|addon| &addon.content))
    {
        let object = unpack(content.as_ref().unwrap()).unwrap();
        text.push_str("---\n");
        text.push_str(&bounded_yaml::write(&object.into()));
    }
    let revision = repository.commit(&[("100644", "all.yaml", text.as_bytes())]);
    let reference = GitRef {
        repository: repository.url(),
        revision,
        path: "all.yaml".into(),
    };
    let sources = GitSources {
        component: reference.clone(),
        component_type_definition: reference.clone(),
        addons: vec![reference; definitions.addons.len()],
    };
    let git = place.git();
    let mut made = release(&definitions, None, &Source::Git(Box::new(sources)));
    let resolved = resolve(&made.spec, &git).await.unwrap();
    assert_eq!(resolved.definitions, definitions);
    made.spec.component.name = "cart".into();
    let error = resolve(&made.spec, &git).await.unwrap_err().to_string();
    assert!(
        error.contains("all.yaml has no Component of openchoreo.dev/v1alpha1 cart; it has Component checkout-service, "),
        "{error}"
    );
}
