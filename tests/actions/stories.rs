//! On every target, a user performs every action with the program.

use std::sync::Arc;

use bowline::controllers::lock::Lock;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::place::Target;
use crate::shop::Shop;
use crate::user::{Ran, User, ended};

/// Makes bowline believe that a controller runs: holds the lock file of an embedded store, or a Lease in a
/// cluster.
struct Controller {
    _lock: Option<Lock>,
}

impl Controller {
    /// Takes the lock of an embedded store, so that the program does not run the controllers. Returns None if
    /// the target is not an embedded store.
    fn keep_out(target: &Target) -> Option<Lock> {
        let store = target.home.path().join("store.db");
        let embedded = target.name == "embedded";
        embedded.then(|| Lock::take(&store).unwrap().expect("nobody has it"))
    }

    async fn begin(target: &Target) -> Self {
        if target.name == "embedded" {
            let lock = Self::keep_out(target);
            return Self { _lock: lock };
        }
        let system = "bowline-system";
        let create = PostParams::default();
        let namespaces: Api<Namespace> = Api::all(target.client());
        let namespace = json!({"metadata": {"name": system}});
        let namespace = serde_json::from_value(namespace).unwrap();
        namespaces.create(&create, &namespace).await.unwrap();
        let leases: Api<Lease> = Api::namespaced(target.client(), system);
        let renewed = jiff::Timestamp::now();
        let lease = json!({"metadata": {"name": "bowline-controller"}, "spec": {
            "holderIdentity": "a-pod", "leaseDurationSeconds": 3600, "renewTime": format!("{renewed:.6}"),
        }});
        let lease = serde_json::from_value(lease).unwrap();
        leases.create(&create, &lease).await.unwrap();
        Self { _lock: None }
    }
}

/// Writes the status of a ReleasePin as the controller does after it has observed the ReleasePin. `ready` is
/// the health. Does nothing on a repository, where no status exists.
async fn observed(shop: &Shop, pin: &str, ready: bool, outcomes: Value) {
    if shop.target.repository().is_some() {
        return;
    }
    let found = shop.pins().get(pin).await.unwrap();
    let generation = found.metadata.generation;
    let applied = found.spec.effective_release(jiff::Timestamp::now());
    let (status, reason) = match ready {
        true => ("True", "ReconcileSuccess"),
        false => ("False", "Degraded"),
    };
    let status = json!({"status": {
        "observedGeneration": generation, "outcomes": outcomes, "appliedRelease": applied,
        "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "0 of 2 ready",
            "lastTransitionTime": "2026-01-05T00:00:00Z",
        }],
    }});
    let params = PatchParams::default();
    let patch = Patch::Merge(status);
    shop.pins()
        .patch_status(pin, &params, &patch)
        .await
        .unwrap();
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

pub async fn from_the_first_deployment_to_gc(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart", "search"]).await;
    let user = User::of(&target);
    // The test itself writes the status that controllers would write.
    let lock = Controller::keep_out(&target);
    // A repository has no status, claims and snapshots, so the steps that need them do not run on it.
    let repository = target.repository().is_some();
    let ends = async |line: &str, code: i32, words: &str| {
        let ran = user.run(line).await;
        target.settle().await;
        assert_eq!(ran.code, code, "{line}: {}{}", ran.out, ran.err);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(words), "{line}: no {words:?} in {said}");
        ran
    };

    // bowline does not promote a release that is not ready, and does not promote without a promotion path.
    let promote = "promote cart --from dev --to staging";
    if repository {
        let ran = ends(&format!("{promote} --dry-run"), 3, "nothing -> cart-2").await;
        let unknown = "readiness in dev is not known";
        assert!(ran.err.contains(unknown), "{}", ran.err);
    } else {
        ends(promote, 5, "cart is not ready in dev").await;
    }
    observed(&shop, "cart-dev", true, json!([])).await;
    ends("promote cart --from dev --to prod", 5, "--skip-path").await;

    // A dry run prints the rendered change and writes nothing.
    shop.pin("cart", "staging", "cart-1").await;
    let before = shop.pins().get("cart-staging").await.unwrap();
    let ran = ends(&format!("{promote} --dry-run"), 3, "cart-1 -> cart-2").await;
    assert!(
        ran.out.contains("shop/cart:1") && ran.out.contains("shop/cart:2"),
        "{}",
        ran.out
    );
    let dry = ends(&format!("{promote} --dry-run -o json"), 3, "changes").await;
    let changes = json(&dry)["items"][0]["changes"].to_string();
    assert!(changes.contains("shop/cart:2"), "{changes}");
    let file = &json(&dry)["files"][0];
    match repository {
        true => {
            assert_eq!(file["path"], "releasepins/staging/cart.yaml");
            assert_eq!(file["change"], "changed");
            let diff = file["diff"].as_str().unwrap_or_default();
            assert!(diff.contains("+    name: cart-2"), "{diff}");
        }
        false => assert_eq!(*file, json!(null)),
    }
    let after = shop.pins().get("cart-staging").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );

    // The second run reports that there is nothing to change.
    ends(promote, 0, "cart in staging: cart-1 -> cart-2 (revision 2)").await;
    ends(promote, 0, "(no change)").await;
    let name = ends(&format!("{promote} -o name"), 0, "").await;
    assert_eq!(name.out, "releasepin.openchoreo.dev/cart-staging\n");

    // Production needs a confirmation. A plan of several changes is refused as a whole.
    observed(&shop, "cart-staging", true, json!([])).await;
    let onward = "promote cart --from staging --to prod";
    ends(
        onward,
        5,
        "nothing was changed: a change of the production environment prod needs a confirmation and there is no terminal\nhint: add --yes",
    )
    .await;
    ends(&format!("{onward} --yes -o yaml"), 0, "result: done").await;
    let both = "promote cart search --from dev --to staging";
    if !repository {
        ends(both, 5, "search is not ready in dev").await;
        let untouched = shop.pins().get_opt("search-staging").await.unwrap();
        assert!(untouched.is_none());
    }
    ends(
        &format!("{both} --unready"),
        0,
        "search in staging: nothing -> search-2",
    )
    .await;

    // A hold stops a deployment until the user removes the hold.
    ends("pin cart -e dev --until 4h --reason INC-42", 0, "1 hold").await;
    ends("deploy cart -e dev --release cart-3", 5, "INC-42, until ").await;
    ends("unpin cart -e dev", 0, "cart in dev: cart-2").await;
    ends("deploy cart -e dev --release cart-3", 0, "cart-2 -> cart-3").await;

    // A dry run of a deployment prints the release of the current definitions, and only the deployment
    // creates it.
    let count = async || {
        let all = shop.releases().list_metadata(&ListParams::default()).await;
        all.unwrap().items.len()
    };
    let before = count().await;
    // On a repository such a release refers to pushed definitions; tests/release covers that.
    let made = if repository { 0 } else { 1 };
    if repository {
        ends("deploy search -e dev --dry-run", 5, "by reference").await;
    } else {
        let dry = ends("deploy search -e dev --dry-run", 3, "creates release").await;
        assert!(dry.out.contains("shop/search:0"), "{}", dry.out);
    }
    ends("pin search -e dev --reason INC-43", 0, "1 hold").await;
    let deploy = match repository {
        true => "deploy search -e dev --release search-3",
        false => "deploy search -e dev",
    };
    ends(deploy, 5, "INC-43").await;
    assert_eq!(count().await, before);
    ends("unpin search -e dev", 0, "").await;
    ends(deploy, 0, "search in dev: search-2 -> search-").await;
    assert_eq!(count().await, before + made);
    ends(deploy, 0, "(no change)").await;

    // bowline does not deploy or promote a release that is marked bad.
    observed(&shop, "cart-dev", true, json!([])).await;
    ends("mark bad cart-3", 5, "add --reason").await;
    ends(
        "mark bad cart-3 --note leaks --dry-run",
        3,
        "cart-3 would be marked bad",
    )
    .await;
    ends(
        "mark bad cart-3 --note leaks",
        0,
        "cart-3 still runs in dev",
    )
    .await;
    ends("mark bad cart-3", 0, "already").await;
    ends(promote, 5, "release cart-3 is marked bad").await;

    // Without a controller, bowline does not know the last good release.
    drop(lock);
    ends("rollback cart -e prod --yes", 5, "no controller runs").await;
    let _controller = match repository {
        true => None,
        false => Some(Controller::begin(&target).await),
    };
    if !repository {
        let unseen = "has not observed the latest change";
        ends("rollback cart -e prod --yes", 5, unseen).await;
        observed(&shop, "cart-prod", false, json!([])).await;
        let none = "no release to roll back to in prod";
        ends("rollback cart -e prod --yes", 5, none).await;
    }
    ends(
        "deploy cart -e prod --release cart-1 --skip-path --reason INC-42 --yes",
        0,
        "cart-1",
    )
    .await;
    let ran = |generation: i64, release: &str, healthy: bool| {
        json!({
            "generation": generation, "release": release, "healthy": healthy,
            "since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z",
        })
    };
    let outcomes = json!([ran(1, "cart-2", true), ran(2, "cart-3", true)]);
    observed(&shop, "cart-prod", false, outcomes).await;
    // The newest healthy release is marked bad, so the rollback goes to the one before. On a repository the
    // user must name the target.
    let back = match repository {
        true => "rollback cart -e prod --to cart-2 --yes",
        false => "rollback cart -e prod --yes",
    };
    ends(back, 0, "cart-1 -> cart-2, 1 hold (revision 3)").await;
    ends("history cart -e prod", 0, "Rollback").await;
    ends(
        "rollback cart -e prod --to cart-9 --yes",
        1,
        "release cart-9 does not exist",
    )
    .await;
    ends(
        "rollback cart -e prod --to-revision 7 --yes",
        1,
        "has no revision 7",
    )
    .await;

    // The first undo reverses the rollback, and the second undo reverses the first.
    ends("undo cart -e prod --yes", 0, "removes the hold").await;
    ends("undo cart -e prod --yes", 0, "cart-1 -> cart-2, 1 hold").await;
    ends(
        "undo search -e staging",
        5,
        "bowline delete releasepins.openchoreo.dev search-staging",
    )
    .await;
    ends(
        "delete releasepin cart-prod",
        5,
        "production environment prod needs a confirmation",
    )
    .await;

    // gc deletes only releases that no ReleasePin needs.
    ends(
        "gc",
        0,
        &format!("0 of {} objects can be deleted", 6 + made),
    )
    .await;
    let gc = "gc cart --keep 0 --min-age 0";
    if !repository {
        ends(&format!("{gc} --dry-run"), 0, "claimed ").await;
    }
    shop.release("cart", "0", "cart-0").await;
    ends(&format!("{gc} --dry-run"), 3, "no ReleasePin refers to it").await;
    ends(gc, 5, "delete them: --confirm").await;
    let collected = ends(
        &format!("releases {gc} --confirm --reason space"),
        0,
        "freed",
    )
    .await;
    // On a repository gc also deletes cart-1, because there is no claim on it and no ReleasePin names it.
    let mut removed: Vec<&str> = collected.out.lines().collect();
    removed.sort_unstable();
    let expected = [
        "release.openchoreo.dev/cart-0 removed",
        "release.openchoreo.dev/cart-1 removed",
    ];
    assert_eq!(removed, expected[..2 - made]);

    // The audit trail is valid and has an entry for every action.
    ends("audit verify", 0, "valid").await;
    let entries = json(&ends("audit list -o json", 0, "").await);
    let actions: Vec<&str> = entries["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["spec"]["action"].as_str())
        .collect();
    for action in [
        "Promote", "Pin", "Unpin", "Deploy", "MarkBad", "Rollback", "Undo", "Collect",
    ] {
        assert!(actions.contains(&action), "no {action} in {actions:?}");
    }
    ends("audit export --format md", 0, "space").await;
}

pub async fn waiting_ends_when_it_is_ready(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let user = User::of(&target);
    let _lock = Controller::keep_out(&target);
    let waiting = user.start("deploy cart -e dev --release cart-3 --wait --timeout 1m");
    let mut feed = shop.feed().await;
    let key = bowline::engine::world::Key::new(&target.namespace, "cart-dev");
    let moved = |world: &bowline::engine::world::World| {
        world.pin(&key).is_some_and(|pin| &*pin.release == "cart-3")
    };
    feed.until(moved).await;
    observed(&shop, "cart-dev", false, json!([])).await;
    observed(&shop, "cart-dev", true, json!([])).await;
    let ran = ended(waiting).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, "cart in dev: cart-2 -> cart-3 (revision 2)\n");

    let ran = user
        .run("deploy cart -e dev --release cart-1 --wait --timeout 1s")
        .await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    let late = "not ready in time: cart in dev: no controller has observed the change yet";
    assert!(ran.err.contains(late), "{}", ran.err);
}
