//! The API server is killed, and started again, while the terminal UI runs.

use std::sync::Arc;
use std::time::Instant;

use bowline::api::openchoreo::pin::ReleasePin;
use kube::api::{Api, PostParams};

use crate::cluster::{self, Cluster, Options};
use crate::place::{Place, Target};
use crate::pty::{ESC, Pty};
use crate::shop::Shop;

/// While the server is gone, the terminal UI marks its data as stale and refuses actions. It continues by
/// itself when the server is back.
pub async fn a_killed_server_is_survived() {
    let Some(cluster) = Cluster::start(Options::default()).await else {
        return;
    };
    cluster::install_bowline(&cluster.client()).await;
    let place = Place::Cluster(Arc::new(cluster));
    let target = Arc::new(Target::new(&place, "cut").await);
    until_served(&target).await;
    let shop = Shop::open(&target, &["cart"]).await;
    let mut pty = Pty::bowline(&target.flags(), target.home.path(), (120, 40));
    pty.shows("cart");
    pty.shows("live");
    // The test takes the cluster out of the target to kill and start its server. It keeps the home directory.
    drop(shop);
    let _home = {
        let target = Arc::into_inner(target).expect("nobody else has it");
        target.home
    };
    let Place::Cluster(cluster) = place else {
        unreachable!("it was made so above");
    };
    let mut cluster = Arc::into_inner(cluster).expect("nobody else has it");

    cluster.kill_apiserver();
    let stale = pty.shows("STALE");
    pty.keys("P");
    pty.wait_for("the action is refused", |screen| {
        screen.contents().contains("refused") || screen.contents().contains("stale")
    });
    println!("--- refused:\n{}", pty.screen().contents());
    pty.keys(ESC);
    pty.shows("cart");

    cluster.restart_apiserver().await;
    let back = Instant::now();
    pty.hides("STALE");
    pty.shows("live");
    println!(
        "stale {:.1} s after the kill, live {:.1} s after the return",
        stale.as_secs_f32(),
        back.elapsed().as_secs_f32()
    );
    pty.keys("q");
    let ended = pty.ended();
    assert!(ended.status.success(), "{:?}", ended.status);
}

/// Waits until the server enforces its policies on ReleasePins. After a start, it serves ReleasePins before
/// it enforces the policies.
async fn until_served(target: &Target) {
    let pins: Api<ReleasePin> = Api::default_namespaced(target.client());
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let probe = bowline::fixture::new_pin("probe", "dev", "probe-1");
    while let Err(kube::Error::Api(status)) = pins.create(&params, &probe).await
        && status.code == 503
    {}
}
