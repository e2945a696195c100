//! Tests in which a user performs every action of the terminal UI with keys.

use std::sync::Arc;

use bowline::api::openchoreo::pin::ReleasePin;
use bowline::api::{DeploymentPipeline, Release};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::HANG;
use crate::escapes;
use crate::place::Target;
use crate::process::{Process, system_namespace};
use crate::pty::{ENTER, ESC, Pty};
use crate::shop::Shop;
use crate::user::User;

/// A running terminal UI on a target, together with controllers.
pub struct Planner {
    pub shop: Shop,
    pub pty: Pty,
    _controller: Option<Process>,
}

impl Planner {
    /// Starts the terminal UI on a shop whose ReleasePins are ready. On a cluster, also starts a controller
    /// process; on an embedded store, the terminal UI itself runs the controllers.
    pub async fn open(target: &Arc<Target>, components: &[&str], size: (u16, u16)) -> Planner {
        let shop = Shop::open(target, components).await;
        shop.data_plane().await;
        let controller = match target.name {
            "embedded" => None,
            _ => {
                system_namespace(target).await;
                Some(Process::start(target, "controller", target.flags()).await)
            }
        };
        let pty = Pty::bowline(&target.flags(), target.home.path(), size);
        Planner {
            shop,
            pty,
            _controller: controller,
        }
    }

    /// Waits until `is_so` is true for a ReleasePin.
    pub async fn until(&self, pin: &str, what: &str, is_so: impl Fn(&ReleasePin) -> bool) {
        let is_so = |found: Option<&ReleasePin>| found.is_some_and(&is_so);
        let waited = tokio::time::timeout(HANG, await_condition(self.shop.pins(), pin, is_so));
        match waited.await {
            Ok(found) => drop(found.unwrap()),
            Err(_) => panic!(
                "{pin} is not {what}; the screen is:\n{}",
                self.pty.screen().contents()
            ),
        }
    }

    /// Waits until the controller has applied this release and reports the ReleasePin as ready.
    pub async fn ready(&self, pin: &str, release: &str) {
        self.until(pin, "ready", |pin| is_ready(pin, release)).await;
    }
}

fn is_ready(pin: &ReleasePin, release: &str) -> bool {
    let Some(status) = &pin.status else {
        return false;
    };
    let status = serde_json::to_value(status).unwrap();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let is_true = |kind: &str| {
        conditions
            .iter()
            .any(|one| one["type"] == kind && one["status"] == "True")
    };
    status["observedGeneration"] == json!(pin.metadata.generation)
        && status["appliedRelease"] == json!(release)
        && is_true("Ready")
}

/// A user promotes, rolls back with a hold, removes the hold and collects garbage, all with keys.
pub async fn every_action_from_the_keyboard(target: Arc<Target>) {
    let mut planner = Planner::open(&target, &["cart", "old"], (120, 40)).await;
    // Production runs the first release. The retention of the pipeline allows the deletion of every unused
    // release.
    planner.shop.pin("cart", "prod", "cart-1").await;
    let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(planner.shop.client.clone());
    let retention =
        json!({"spec": {"retention": {"enabled": false, "keepReleases": 1, "minAge": "0s"}}});
    let patch = Patch::Merge(&retention);
    let params = PatchParams::default();
    pipelines.patch("default", &params, &patch).await.unwrap();
    planner.ready("cart-dev", "cart-2").await;
    planner.ready("cart-prod", "cart-1").await;
    planner.pty.shows("live");
    // The plan uses the same rows as the matrix, so the test waits until the matrix shows both cells as
    // ready.
    planner.pty.wait_for("two ready cells", |screen| {
        screen.contents().matches('●').count() >= 2
    });

    // A promotion from dev to staging: the screen shows the change, and a key confirms it.
    planner.pty.keys("gghhh");
    planner.pty.keys("P");
    planner.pty.shows("promote  cart");
    planner.pty.shows("+ ConfigMap");
    planner.pty.shows("y apply");
    planner.pty.keys("y");
    planner.ready("cart-staging", "cart-2").await;
    planner.pty.keys(ESC);
    planner.pty.hides("promote  cart");

    // A promotion from staging to production: the user confirms it by typing the name of the environment.
    planner.pty.keys("l");
    planner.pty.keys("P");
    planner.pty.shows("type prod");
    planner.pty.shows("data.image");
    planner.pty.keys("prod");
    planner.pty.keys(ENTER);
    planner.ready("cart-prod", "cart-2").await;
    planner.pty.keys(ESC);
    planner.pty.hides("promote  cart");

    // A rollback to the last good release. The same write places a hold, and the audit trail contains the
    // reason.
    planner.pty.keys("l");
    planner.pty.keys("R");
    planner.pty.shows("type prod");
    planner.pty.shows("data.image");
    planner.pty.keys("prod errors up");
    planner.pty.keys(ENTER);
    planner
        .until("cart-prod", "rolled back and held", |pin| {
            pin.spec.release_ref.name == "cart-1" && pin.spec.holds.len() == 1
        })
        .await;
    let held = planner.shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(held.spec.holds[0].reason.as_deref(), Some("errors up"));
    planner.ready("cart-prod", "cart-1").await;
    planner.pty.keys(ESC);
    planner.pty.hides("rollback  cart");
    planner.pty.shows("1 held");

    // The user removes the hold.
    planner.pty.keys("U");
    planner.pty.shows("type prod");
    planner.pty.hides("being rendered");
    planner.pty.keys("prod");
    planner.pty.keys(ENTER);
    planner
        .until("cart-prod", "free", |pin| pin.spec.holds.is_empty())
        .await;
    planner.pty.keys(ESC);
    planner.pty.hides("1 held");

    // Garbage collection: the user confirms it by typing the number of unused releases.
    let names = async || {
        let releases: Api<Release> = planner.shop.releases();
        let all = releases
            .list_metadata(&ListParams::default())
            .await
            .unwrap();
        all.items
            .into_iter()
            .filter_map(|one| one.metadata.name)
            .collect::<Vec<_>>()
    };
    let before = names().await;
    assert!(before.contains(&"old-1".to_owned()), "{before:?}");
    planner.pty.keys("X");
    planner.pty.shows("old-1");
    planner.pty.shows("type 1");
    planner.pty.keys("1");
    planner.pty.keys(ENTER);
    let releases: Api<Release> = planner.shop.releases();
    let gone = await_condition(releases, "old-1", |found: Option<&Release>| found.is_none());
    let gone = tokio::time::timeout(HANG, gone).await;
    let screen = planner.pty.screen().contents();
    gone.unwrap_or_else(|_| panic!("old-1 stays; the screen is:\n{screen}"))
        .unwrap();
    let after = names().await;
    assert_eq!(after.len(), before.len() - 1, "{after:?}");

    // The test waits for the end of the deletion, because the program does not quit while work is in
    // progress.
    planner.pty.shows("1 deleted");
    planner.pty.keys(ESC);
    planner.pty.hides("matrix >");
    let chain = planner.shop.chain("cart-prod").await;
    println!("cart-prod: {} entries, a valid chain", chain.len());
    planner.pty.keys("q");
    let ended = planner.pty.ended();
    assert!(ended.status.success(), "{:?}", ended.status);
}

/// On a repository, a promotion by keys makes one commit. The header shows how many commits are not pushed.
pub async fn a_promotion_on_a_repository_is_a_commit(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    shop.pin("cart", "staging", "cart-1").await;
    target.git("push -q origin main");
    let before = target.git("rev-parse HEAD");
    let mut pty = Pty::bowline(&target.flags(), target.home.path(), (120, 40));
    pty.shows("cart");
    pty.shows("deploy ▪ main ");
    pty.keys("gghhh");
    pty.keys("P");
    pty.shows("+    name: cart-2");
    pty.shows("data.image");
    pty.shows("y apply");
    pty.keys("y");
    pty.shows("promote cart-2 to staging");
    pty.shows("deploy ▪ main, ahead 1");
    assert_eq!(
        target.git("log -1 --format=%s"),
        "promote cart-2 to staging"
    );
    assert_eq!(target.git("rev-parse HEAD^"), before);
    assert_eq!(target.git("status --porcelain"), "");
    pty.keys(ESC);
    pty.hides("promote  cart");
    // The command `:push` pushes the commit.
    pty.keys(":push");
    pty.keys(ENTER);
    pty.shows("pushed main to origin");
    pty.hides("ahead 1");
    let pushed = target.git("--git-dir ../origin.git rev-parse main");
    assert_eq!(pushed, target.git("rev-parse HEAD"));
    pty.keys("q");
    let ended = pty.ended();
    assert!(ended.status.success(), "{:?}", ended.status);
}

/// However a user leaves the program, it restores the terminal. While the program is suspended, the shell can
/// use the terminal.
pub async fn every_way_out(target: Arc<Target>) {
    use rustix::process::Signal;
    let shop = Shop::open(&target, &["cart"]).await;
    let start = || {
        let mut pty = Pty::bowline(&target.flags(), target.home.path(), (100, 30));
        pty.shows("cart");
        assert!(pty.screen().alternate_screen());
        pty
    };
    for (signal, name) in [
        (Signal::TERM, "Terminated"),
        (Signal::HUP, "Hangup"),
        (Signal::INT, "Interrupt"),
        (Signal::ABORT, "Aborted"),
    ] {
        let pty = start();
        pty.signal(signal);
        let ended = pty.ended();
        assert_eq!(ended.status.signal(), Some(name), "{:?}", ended.status);
        assert_eq!(ended.screen.contents(), "");
    }
    let script = format!(
        "{} {}; echo asleep; read line; fg; echo ended $?",
        env!("CARGO_BIN_EXE_bowline"),
        target.flags().join(" ")
    );
    let arguments = ["-mc".to_owned(), script];
    let mut pty = Pty::start("sh", &arguments, target.home.path(), (100, 30));
    pty.shows("cart");
    pty.keys("\x1a");
    pty.shows("asleep");
    assert!(pty.has_its_settings());
    assert!(!pty.screen().alternate_screen());
    pty.keys(ENTER);
    pty.shows("cart");
    // The program does not see this change while it is suspended, but shows it afterwards.
    shop.pin("cart", "staging", "cart-3").await;
    pty.wait_for("cart at version 3", |screen| {
        let mut rows = screen.rows(0, 100);
        rows.any(|row| row.contains("cart ") && row.split_whitespace().any(|word| word == "3"))
    });
    pty.keys("q");
    let ended = pty.ended();
    assert!(ended.screen.contents().contains("ended 0"));
}

/// When the user moves the cursor in a terminal of 200x60, bowline writes at most 2 KB.
pub async fn a_moved_selection_is_cheap(target: Arc<Target>) {
    let names: Vec<String> = (0..50).map(|n| format!("component-{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut planner = Planner::open(&target, &names, (200, 60)).await;
    for name in &names {
        planner
            .ready(&format!("{name}-dev"), &format!("{name}-2"))
            .await;
    }
    planner.pty.shows("component-40");
    planner.pty.shows("live");
    planner.pty.keys("gghhh");
    let mut costs = Vec::new();
    for key in ["j", "j", "j", "l", "j", "k", "h", "j", "j", "j"] {
        planner.pty.settles();
        let (before, screen) = (planner.pty.bytes(), planner.pty.screen());
        planner.pty.keys(key);
        planner.pty.wait_for("the selection moves", |now| {
            now.contents_formatted() != screen.contents_formatted()
        });
        planner.pty.settles();
        costs.push(planner.pty.bytes() - before);
    }
    println!("bytes per key at 200x60: {costs:?}");
    assert!(costs.iter().all(|cost| *cost <= 2048), "{costs:?}");
    planner.pty.keys("q");
    planner.pty.ended();
}

/// `bowline screenshot` needs no terminal, and prints the same screen as the terminal UI. The SVG that it
/// prints needs no other file.
pub async fn a_screen_without_a_terminal(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    // The test holds the lock of the controllers, so that the state does not change between the two screens.
    let _lock = bowline::controllers::lock::Lock::take(&target.home.path().join("store.db"));
    let mut pty = Pty::bowline(&target.flags(), target.home.path(), (100, 30));
    pty.shows("cart");
    pty.shows("live");
    pty.keys("q");
    pty.ended();
    let user = User::of(&target);
    let (text, _) = user.done("screenshot --size 100x30").await;
    assert_eq!(text.lines().count(), 30);
    assert!(
        text.contains("cart in dev") && !text.contains('\x1b'),
        "{text}"
    );
    let (plan, _) = user.done("screenshot promote --size 100x30 --ascii").await;
    assert!(plan.is_ascii(), "{plan}");
    assert!(plan.contains("matrix > promote"), "{plan}");
    let (ansi, _) = user.done("screenshot --format ansi --size 100x30").await;
    escapes::check(ansi.as_bytes()).unwrap();
    let (rows, columns) = (31u16.try_into().unwrap(), 100u16.try_into().unwrap());
    let mut plain = vt100::Parser::new(rows, columns, 0);
    plain.process(ansi.replace('\n', "\r\n").as_bytes());
    let drawn = plain.screen().contents();
    let rows = |text: &str| -> Vec<String> {
        text.lines()
            .skip(2)
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    assert_eq!(rows(drawn.trim_end())[..2], rows(&text)[..2]);
    let (svg, _) = user
        .done("screenshot --format svg --frame --theme light")
        .await;
    assert!(svg.starts_with("<svg ") && svg.contains(">cart<"), "{svg}");
    user.ends("screenshot nonsense", 2, "cannot show nonsense")
        .await;
    user.ends("screenshot --theme nonsense", 2, "unknown theme nonsense")
        .await;
    user.ends("screenshot --size 5x5", 2, "from 20x5").await;
}
