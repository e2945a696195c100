//! Tests of `bowline install` and `uninstall` on a cluster without bowline.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bowline::api::{ReleasePin, labels};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use crate::HANG;
use crate::cluster::Cluster;
use crate::user::{Ran, ended};

/// Runs bowline with all permissions on a cluster.
pub async fn bowline(cluster: &Cluster, line: &str) -> Ran {
    bowline_to(cluster, line, Stdio::piped()).await
}

/// Runs bowline with all permissions on a cluster. Its stdout goes to `out`.
pub async fn bowline_to(cluster: &Cluster, line: &str, out: Stdio) -> Ran {
    let home = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .args(line.split_whitespace())
        .env_clear()
        .env("HOME", home.path())
        .env("KUBECONFIG", cluster.kubeconfig())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn();
    ended(run.unwrap()).await
}

/// Counts the lines of an output. Lines with the same text after their first word count together.
pub fn words(out: &str) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    for line in out.lines() {
        let word = line.split_once(' ').map_or("", |(_, word)| word);
        *words.entry(word.to_owned()).or_default() += 1;
    }
    words
}

pub fn all(word: &str, count: usize) -> BTreeMap<String, usize> {
    [(word.to_owned(), count)].into()
}

/// Returns the objects that `bowline install` creates.
pub fn bundle() -> Vec<Value> {
    bowline::cli::bundle::objects(None).unwrap()
}

pub fn api(cluster: &Cluster, object: &Value) -> Api<DynamicObject> {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str);
    let version = text("/apiVersion").unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, text("/kind").unwrap());
    let resource = ApiResource::from_gvk(&kind);
    match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    }
}

/// Counts the objects in the cluster that have bowline's label and are not being deleted.
async fn present(cluster: &Cluster) -> usize {
    let mut count = 0;
    for object in bundle() {
        let name = object["metadata"]["name"].as_str().unwrap();
        let found = api(cluster, &object).get_opt(name).await.unwrap();
        let going = found
            .as_ref()
            .is_some_and(|found| found.metadata.deletion_timestamp.is_some());
        let labels = found
            .and_then(|found| found.metadata.labels)
            .unwrap_or_default();
        count += usize::from(
            !going
                && labels
                    .get(labels::PART_OF)
                    .is_some_and(|part| part == "bowline"),
        );
    }
    count
}

/// Waits until the object with this name is deleted.
pub async fn gone<K>(objects: Api<K>, name: &str)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let gone = await_condition(objects, name, |object: Option<&K>| object.is_none());
    tokio::time::timeout(HANG, gone).await.unwrap().unwrap();
}

pub async fn a_cluster_gets_and_loses_everything(cluster: Arc<Cluster>) {
    let objects = bundle().len();
    // A dry run prints every object and changes nothing.
    let ran = bowline(&cluster, "install --dry-run").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (3, all("created (dry run)", objects)),
        "{}",
        ran.err
    );
    assert_eq!(present(&cluster).await, 0);
    let ran = bowline(&cluster, "install --image example/bowline:7").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (0, all("created", objects)),
        "{}",
        ran.err
    );
    // After the installation, the server accepts a ReleasePin.
    let pins: Api<ReleasePin> = Api::namespaced(cluster.client(), "default");
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let pin = bowline::fixture::new_pin("cart", "dev", "cart-1");
    pins.create(&dry, &pin).await.unwrap();
    assert_eq!(present(&cluster).await, objects);
    // The server serves the kind ReleasePin, and an admission policy refuses an invalid object.
    let kubectl = |words: &str| {
        let out = cluster
            .kubectl()
            .args(words.split_whitespace())
            .output()
            .unwrap();
        (
            out.status.success(),
            String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap(),
        )
    };
    let (_, image) =
        kubectl("get deployment bowline-controller -n bowline-system -o jsonpath={..image}");
    assert_eq!(image, "example/bowline:7");
    let (found, said) = kubectl("get releasepins.openchoreo.dev -A");
    assert!(found, "{said}");
    // A second installation changes nothing.
    let ran = bowline(&cluster, "install --dry-run --image example/bowline:7").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (0, all("unchanged (dry run)", objects)),
        "{}",
        ran.err
    );
    let ran = bowline(&cluster, "install --image example/bowline:7").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (0, all("unchanged", objects)),
        "{}",
        ran.err
    );
    // An installation with another image changes only the Deployment.
    let ran = bowline(&cluster, "install --image example/bowline:8").await;
    assert_eq!(words(&ran.out)["configured"], 1, "{}", ran.out);

    // The uninstallation keeps the objects of users, and the message names them.
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), labels::SYSTEM_NAMESPACE);
    let map = serde_json::from_value(json!({"metadata": {"name": "notes"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let component = json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Component", "metadata": {"name": "cart", "namespace": "default"}, "spec": {"componentType": "deployment/web"}});
    let components = api(&cluster, &component);
    let params = PatchParams::apply("test");
    components
        .patch("cart", &params, &Patch::Apply(&component))
        .await
        .unwrap();
    let ran = bowline(&cluster, "uninstall --dry-run").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (3, all("deleted (dry run)", objects - 2)),
        "{}",
        ran.err
    );
    assert_eq!(present(&cluster).await, objects);
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (0, all("deleted", objects - 2)),
        "{}",
        ran.err
    );
    for line in [
        "namespace/bowline-system stays: it contains configmap/notes",
        "customresourcedefinition.apiextensions.k8s.io/components.openchoreo.dev stays: it has objects such as default/cart",
    ] {
        assert!(ran.err.contains(line), "{}", ran.err);
    }
    assert!(components.get_opt("cart").await.unwrap().is_some());
    // Without objects of users, the uninstallation removes every object.
    components
        .delete("cart", &DeleteParams::default())
        .await
        .unwrap();
    maps.delete("notes", &DeleteParams::default())
        .await
        .unwrap();
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (0, all("deleted", 2)),
        "{}{}",
        ran.out,
        ran.err
    );
    gone(
        Api::<Namespace>::all(cluster.client()),
        labels::SYSTEM_NAMESPACE,
    )
    .await;
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    gone(crds.clone(), "components.openchoreo.dev").await;
    assert_eq!(
        crds.list(&ListParams::default()).await.unwrap().items.len(),
        0
    );
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    println!("{objects} objects: installed, installed again without a write, removed");
}

pub async fn what_others_created_is_not_touched(cluster: Arc<Cluster>) {
    // Another system has installed a kind of the same name, with fields that bowline's kind does not have.
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let name = "releases.core.choreo.dev";
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let foreign = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "labels": {labels::PART_OF: "openchoreo"}},
        "spec": {
            "group": "core.choreo.dev", "scope": "Namespaced",
            "names": {"kind": "Release", "plural": "releases", "singular": "release"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let params = PatchParams::apply("openchoreo");
    crds.patch(name, &params, &Patch::Apply(&foreign))
        .await
        .unwrap();
    let established = await_condition(crds.clone(), name, conditions::is_crd_established());
    tokio::time::timeout(HANG, established)
        .await
        .unwrap()
        .unwrap();
    let before = crds.get(name).await.unwrap();
    for line in ["install --dry-run", "install"] {
        let ran = bowline(&cluster, line).await;
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{line}: {}", ran.err);
        for words in [
            "nothing was changed",
            "customresourcedefinition.apiextensions.k8s.io/releases.core.choreo.dev (written by kube-apiserver, openchoreo)",
            "hint:",
            "kubectl label customresourcedefinitions.apiextensions.k8s.io releases.core.choreo.dev app.kubernetes.io/part-of=bowline",
        ] {
            assert!(
                ran.err.contains(words),
                "{line}: {} has no {words}",
                ran.err
            );
        }
    }
    assert_eq!(present(&cluster).await, 0, "not even the rest");
    let after = crds.get(name).await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err
            .contains("releases.core.choreo.dev stays: bowline did not create it"),
        "{}",
        ran.err
    );
    assert!(crds.get_opt(name).await.unwrap().is_some());
    crds.delete(name, &DeleteParams::default()).await.unwrap();
    gone(crds, name).await;
}

/// Converts whole floats to integers, because YAML readers treat 1.0 and 1 as equal.
fn whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(fields) => fields.values_mut().for_each(whole),
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0) {
                *value = json!(float as i64);
            }
        }
        _ => {}
    }
}

/// Returns the objects by name, in a form that can be compared: without their order and the notation of
/// numbers.
pub fn sorted(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let key = |object: &Value| {
        let word = |at: &str| {
            object
                .pointer(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        ["/kind", "/metadata/namespace", "/metadata/name"]
            .map(word)
            .join(" ")
    };
    objects
        .into_iter()
        .map(|mut object| {
            whole(&mut object);
            (key(&object), object)
        })
        .collect()
}

pub async fn deploy_is_what_is_installed(cluster: Arc<Cluster>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let built = cluster
        .kubectl()
        .arg("kustomize")
        .arg(&folder)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let text = String::from_utf8(built.stdout).unwrap();
    let documents = text.split("\n---\n").map(|document| {
        serde_yaml::from_str(document).unwrap_or_else(|error| panic!("{error}\n{document}"))
    });
    let (kustomized, installed) = (sorted(documents.collect()), sorted(bundle()));
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kustomized), names(&installed));
    for (name, object) in &installed {
        assert_eq!(&kustomized[name], object, "{name}");
        let part = &object["metadata"]["labels"][labels::PART_OF];
        assert_eq!(part, labels::PART_OF_BOWLINE, "{name}");
    }
    // The alerts of the kustomize component are equal to the alerts in rules.yaml.
    let read = |file: &str| -> Value {
        serde_yaml::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap()
    };
    let (plain, wrapped) = (read("rules.yaml"), read("prometheus-operator/rules.yaml"));
    assert_eq!(plain, wrapped["spec"]);
}
