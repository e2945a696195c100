//! Tests of workloads in the read model: which revision is the current one, and which one a rollback
//! restores.

use jiff::Timestamp;
use kube_embedded::{Embedded, Objects, Setup};
use serde_json::json;

use super::kind::DEPLOYMENT;
use super::matrix;
use crate::engine::audit::EntriesOf;
use crate::engine::world::{Key, Source, World};
use crate::fixture::{deployment, replica_set};
use crate::subjects;
use crate::subjects::release_pin::matrix::Health;

#[tokio::test]
async fn a_workload_has_audit_entries_only_if_the_kind_lists_its_kind() {
    let current = crate::api::store_setup().objects;
    let crds = crate::api::crds();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "AuditEntry");
    let mut older = serde_json::to_value(crd.unwrap()).unwrap();
    let schema = &mut older["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let subject = &mut schema["properties"]["spec"]["properties"]["subject"];
    subject["properties"]["kind"]["enum"] = json!(["ReleasePin", "Component"]);
    for (objects, expected) in [
        (current, EntriesOf::Kind),
        (Objects::of(vec![older]), EntriesOf::OtherKinds),
        (Objects::default(), EntriesOf::Nothing),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup {
            objects,
            ..Setup::default()
        };
        let file = folder.path().join("store.db");
        let store = Embedded::open(&file, "ana", setup).await.unwrap();
        let client = store.client("shop");
        assert_eq!(EntriesOf::ask(&client, &DEPLOYMENT).await, expected);
    }
}

fn world() -> World {
    let mut world = crate::subjects::read_model();
    deployment(&mut world, "web", &["web:1", "web:2", "web:3"], 2);
    world
}

fn web() -> Key {
    Key::new("shop", "deploy/web")
}

#[test]
fn the_revision_before_the_current_one_is_restored() {
    let world = world();
    let row = world.workload(&web()).unwrap();
    assert_eq!(matrix::current(&world, row).unwrap().number, 3);
    assert_eq!(&*matrix::good(&world, row).unwrap().label, "rev 2 web:2");
}

#[test]
fn a_revision_that_is_published_again_leaves_its_old_number() {
    let mut world = world();
    // A rollback to revision 2 gives the ReplicaSet of revision 2 the new number 4.
    replica_set(&mut world, "web-2", "uid-web", 4, "web:2");
    let row = world.workload(&web()).unwrap();
    let numbers: Vec<i64> = world.workload_revisions(row).map(|it| it.number).collect();
    assert_eq!(numbers, [1, 3, 4]);
}

#[test]
fn a_changed_revision_belongs_to_the_row_of_its_workload() {
    let world = world();
    let row = |source, name| {
        let row = world.workload_of(source, &Key::new("shop", name));
        row.map(|row| row.key.name.to_string())
    };
    let web = Some("deploy/web".to_owned());
    assert_eq!(row(Source::REPLICA_SETS, "web-1"), web);
    assert_eq!(row(Source::DEPLOYMENTS, "web"), web);
    assert_eq!(row(Source::DEPLOYMENTS, "api"), None);
}

#[test]
fn a_workload_without_an_environment_has_the_column_of_its_namespace() {
    let mut world = world();
    deployment(&mut world, "api", &["api:1"], 1);
    let columns = subjects::matrix::columns(&world, Some("shop"));
    let names: Vec<&str> = columns.names().iter().map(|name| &**name).collect();
    assert_eq!(names, ["shop"]);
    let api = Key::new("shop", "deploy/api");
    let cell = subjects::matrix::cell(&world, &columns, &api, 0, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(cell.health(), Health::Progressing);
    assert_eq!(cell.progress.unwrap().to_string(), "1/2");
    assert_eq!(cell.good, None);
}
