//! A GitOps tool owns a ReleasePin and restores its state from git again and again. A user rolls the
//! ReleasePin back meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::api::ReleasePin;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use tokio::sync::watch;

use crate::place::Target;
use crate::shop::Shop;
use crate::user::User;
use crate::{HANG, sized};

/// Applies the ReleasePin from git in an endless loop, as Argo CD does, and counts the applies in `count`.
async fn sync(client: Client, count: watch::Sender<usize>) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client);
    let mut ticks = tokio::time::interval(Duration::from_millis(sized(30, 1000)));
    let params = PatchParams::apply("argocd-controller").force();
    let git = Patch::Apply(bowline::fixture::new_pin("cart", "prod", "cart-3"));
    loop {
        ticks.tick().await;
        pins.patch("cart-prod", &params, &git).await.unwrap();
        count.send_modify(|count| *count += 1);
    }
}

pub async fn a_rollback_outlives_what_git_says(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let (count, mut counted) = watch::channel(0_usize);
    let mut syncing = tokio::task::JoinSet::new();
    syncing.spawn(sync(target.client_of("argocd"), count));
    let mut synced = async |times: usize| {
        let now = *counted.borrow_and_update();
        let again = counted.wait_for(|count| *count >= now + times);
        tokio::time::timeout(HANG, again).await.unwrap().unwrap();
    };
    synced(2).await;
    let user = User::of(&target);
    let begun = Instant::now();
    let (out, said) = user
        .done("rollback cart -e prod --to cart-1 --reason INC-7 --yes")
        .await;
    assert_eq!(out, "cart in prod: cart-3 -> cart-1, 1 hold (revision 2)\n");
    assert!(
        said.contains(
            "Argo CD owns this ReleasePin: git still names cart-3, and the hold keeps cart-1 running"
        ),
        "{said}"
    );
    let times = sized(5, 30);
    for _ in 0..times {
        synced(1).await;
        let pin = shop.pins().get("cart-prod").await.unwrap();
        assert_eq!(pin.spec.release_ref.name, "cart-3", "git's");
        assert_eq!(pin.spec.effective_release(Timestamp::now()), "cart-1");
        assert_eq!(pin.metadata.generation, Some(2), "nobody fights");
    }

    // bowline refuses to change the releaseRef, and the hint is a command for the git repository.
    user.done("deploy cart -e staging --release cart-2 --skip-path --reason test")
        .await;
    let pin = shop.pins().get("cart-prod").await.unwrap();
    let held = format!(
        "cart in prod is held at cart-1 ({}, INC-7)\nhint: bowline unpin cart -e prod",
        pin.spec.holds[0].owner
    );
    user.ends(
        "promote cart --from staging --to prod --unready --reason x --yes",
        5,
        &held,
    )
    .await;
    let (out, said) = user.done("unpin cart -e prod --reason over --yes").await;
    let owner = &pin.spec.holds[0].owner;
    let moved = "cart in prod: cart-1 -> cart-3, lifts the hold of";
    assert_eq!(out, format!("{moved} {owner}: INC-7 (revision 3)\n"));
    assert!(
        said.contains("Argo CD restores the release in git: cart-3 instead of cart-1"),
        "{said}"
    );
    synced(2).await;
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(pin.spec.effective_release(Timestamp::now()), "cart-3");
    for line in [
        "promote cart --from staging --to prod --unready --reason x --yes",
        "deploy cart -e prod --release cart-2 --skip-path --reason x --yes",
    ] {
        user.ends(
            line,
            5,
            "Argo CD owns cart in prod and would revert a change made here\nhint: change it in git: bowline --repo DIR deploy cart -e prod --release cart-2",
        )
        .await;
    }
    syncing.shutdown().await;
    assert_eq!(shop.chain("cart-prod").await.len(), 3);
    user.done("audit verify").await;
    println!(
        "{}: the rollback stood through {times} syncs of {} in {:.1} s; promote and deploy were refused",
        target.name,
        *counted.borrow(),
        begun.elapsed().as_secs_f64(),
    );
}
