//! Races between a process that deploys a release and a process that deletes this release. Afterwards no
//! ReleasePin may name a deleted release.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::api::bowline::audit::AuditEntry;
use bowline::api::{Release, labels};
use bowline::engine::audit::{self, AuditWriter};
use bowline::engine::publish::{Applied, ApplyError, apply};
use bowline::engine::subject::dynamic;
use bowline::engine::world::Key;
use bowline::engine::world::feed::Feed;
use bowline::subjects::release_pin::actions::gc::{self, Candidate, Collection, Gc};
use bowline::subjects::release_pin::collect::{Collected, Collector};
use bowline::subjects::release_pin::kind::{KIND, live};
use futures::future::join;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::place::Target;
use crate::shop::Shop;
use crate::sized;

/// The release that one process deploys and the other one deletes.
const WANTED: &str = "cart-1";
const BASE: &str = "cart-2";
const PIN: &str = "cart-dev";

/// The objects of a race: one component, one ReleasePin, and one release that the ReleasePin does not name
/// yet.
struct Arena {
    shop: Shop,
    feed: Feed,
    body: Release,
    /// The state of the pseudo-random numbers that decide which process begins, and when. The numbers are the
    /// same in every run.
    dice: AtomicUsize,
}

/// How many rounds of a race ended with each result.
#[derive(Debug, Default)]
struct Score {
    moved: usize,
    removed: usize,
    put_back: usize,
    /// The number of rounds after which the ReleasePin names a release that does not exist. Must be 0.
    dangling: usize,
}

impl Arena {
    async fn open(target: &Arc<Target>) -> Self {
        let shop = Shop::open(target, &["cart"]).await;
        let releases = shop.releases();
        let delete = DeleteParams::default();
        releases.delete("cart-3", &delete).await.unwrap();
        let found = releases.get(WANTED).await.unwrap();
        let mut body = Release::new(WANTED, found.spec);
        body.metadata.labels = found.metadata.labels;
        body.metadata.annotations = found.metadata.annotations;
        Self {
            feed: shop.feed().await,
            shop,
            body,
            dice: AtomicUsize::new(0x2545_f491),
        }
    }

    /// Prepares a round: creates the release, and makes the ReleasePin name another release.
    async fn reset(&mut self) {
        let releases = self.shop.releases();
        let params = PatchParams::default();
        if self
            .shop
            .pins()
            .get(PIN)
            .await
            .unwrap()
            .spec
            .release_ref
            .name
            != BASE
        {
            self.point(BASE).await;
        }
        if releases.get_opt(WANTED).await.unwrap().is_some() {
            let free = Patch::Merge(json!({"metadata": {"labels": {labels::PINNED: null}}}));
            releases.patch(WANTED, &params, &free).await.unwrap();
            let delete = DeleteParams::default();
            releases.delete(WANTED, &delete).await.unwrap();
        }
        let made = releases.create(&PostParams::default(), &self.body).await;
        let uid = made.unwrap().uid().unwrap();
        let (wanted, pin) = (self.key(WANTED), self.key(PIN));
        self.feed
            .until(|world| {
                let release = world.release(&wanted);
                let pin = world.pin(&pin);
                release.is_some_and(|release| *release.uid == *uid)
                    && pin.is_some_and(|pin| &*pin.release == BASE)
            })
            .await;
    }

    /// Changes the release of the ReleasePin as kubectl does: without a claim and without an operation
    /// annotation.
    async fn point(&self, release: &str) {
        let patch = Patch::Merge(json!({"spec": {"releaseRef": {"name": release}}}));
        let params = PatchParams::default();
        self.shop.pins().patch(PIN, &params, &patch).await.unwrap();
    }

    fn key(&self, name: &str) -> Key {
        Key::new(&self.shop.target.namespace, name)
    }

    fn collection(&self, round: usize) -> Collection {
        let command = Gc {
            components: vec!["cart".to_owned()],
            keep: Some(0),
            min_age: Some(Duration::ZERO),
        };
        let asked = self.shop.asked(&format!("collect-{round}"), "admin");
        let plan = gc::plan(&self.feed.world(), &command, &asked).unwrap();
        let going: Vec<_> = plan
            .going()
            .map(|found| found.key.name.to_string())
            .collect();
        assert_eq!(going, [WANTED]);
        plan
    }

    async fn collect(&self, plan: &Collection) -> Option<Collected> {
        let collector = Collector {
            client: &self.shop.client,
            plan,
            by: "admin",
            clock: &Timestamp::now,
            remembers: Duration::from_millis(50),
        };
        let mut became = None;
        let mut tell = |_: &Candidate, collected| became = Some(collected);
        collector.collect(&|| false, &mut tell).await.unwrap();
        became
    }

    /// Deploys the release as bowline does: with a claim and an operation annotation.
    async fn deploy(&self, round: usize, patience: usize) -> Result<Applied, ApplyError> {
        let operation = format!("deploy-{round}");
        let plan = {
            let world = self.feed.world();
            self.shop.deployment(&world, WANTED, &operation, "admin")
        };
        self.hesitate(patience).await;
        apply(&self.shop.client, &plan, &plan.changes[0], &Timestamp::now).await
    }

    /// Sends up to `most` other requests first, so that the two processes meet in every order.
    async fn hesitate(&self, most: usize) {
        let mut dice = self.dice.load(Ordering::Relaxed);
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        self.dice.store(dice, Ordering::Relaxed);
        for _ in 0..dice % (most + 1) {
            self.shop.pins().get(PIN).await.unwrap();
        }
    }

    /// Adds the result of one round to the score.
    async fn count(&self, score: &mut Score) {
        let pin = self.shop.pins().get(PIN).await.unwrap();
        let named = &pin.spec.release_ref.name;
        let there = self.shop.releases().get_opt(named).await.unwrap().is_some();
        score.dangling += usize::from(!there);
        match self.shop.releases().get_opt(WANTED).await.unwrap() {
            Some(_) => score.moved += usize::from(named == WANTED),
            None => score.removed += 1,
        }
    }

    /// Checks that the audit trail of the ReleasePin is complete.
    async fn verifies(&self) {
        // Changes by kubectl have no audit entries, so the recorder of the controller writes them now.
        let (client, namespace) = (&self.shop.client, &self.shop.target.namespace);
        let audit = AuditWriter::new(client, namespace, Timestamp::now()).await;
        let pin = self.shop.pins().get(PIN).await.unwrap();
        let recorded = audit.unwrap().record(&KIND, &dynamic(&pin)).await;
        recorded.unwrap();
        let list = ListParams::default();
        let pins = self.shop.pins().list(&list).await.unwrap().items;
        let entries: Vec<AuditEntry> = self.shop.entries().list(&list).await.unwrap().items;
        let verdict = audit::verify(&live(&pins), &entries);
        assert!(verdict.is_valid(), "{:?}", verdict.problems);
    }

    fn tell(&self, what: &str, rounds: usize, score: &Score) {
        println!(
            "{}: {what}: {rounds} rounds: {score:?}",
            self.shop.target.name
        );
    }
}

/// Returns the number of rounds: `short`, or in the full form the number for this target. A cluster gets
/// fewer rounds, because it is slower.
fn rounds(target: &Target, short: usize, embedded: usize, cluster: usize) -> usize {
    let full = match target.name {
        "embedded" => embedded,
        _ => cluster,
    };
    sized(short, full)
}

/// How many times more rounds a race may run if the same side has won all rounds.
const PATIENCE: usize = 20;

pub async fn gc_leaves_no_pin_without_its_release(target: Arc<Target>) {
    let mut arena = Arena::open(&target).await;
    let rounds = rounds(&target, 40, 10_000, 1_600);
    let mut score = Score::default();
    // A race that one side always wins proves little, so it continues until both sides have won, up to a
    // limit.
    for round in 0..rounds * PATIENCE {
        if round >= rounds && score.moved > 0 && score.removed > 0 {
            break;
        }
        arena.reset().await;
        let plan = arena.collection(round);
        let collecting = async {
            arena.hesitate(4).await;
            arena.collect(&plan).await
        };
        // The deployment waits up to 40 requests, because the collection sends many requests before its
        // deletion.
        let (deployed, collected) = join(arena.deploy(round, 40), collecting).await;
        if let Some(Collected::PutBack(_)) = &collected {
            score.put_back += 1;
        }
        // The deployment reports success exactly if the ReleasePin names the release.
        let pin = arena.shop.pins().get(PIN).await.unwrap();
        assert_eq!(
            deployed.is_ok(),
            pin.spec.release_ref.name == WANTED,
            "{deployed:?} {collected:?}"
        );
        arena.count(&mut score).await;
    }
    arena.tell("gc against a move", rounds, &score);
    arena.verifies().await;
    assert_eq!(score.dangling, 0, "{score:?}");
    assert!(score.moved > 0 && score.removed > 0, "both win: {score:?}");
}

pub async fn a_blind_delete_leaves_no_pin_without_its_release(target: Arc<Target>) {
    let mut arena = Arena::open(&target).await;
    let rounds = rounds(&target, 40, 10_000, 1_600);
    let mut score = Score::default();
    // A race that one side always wins proves little, so it continues until both sides have won, up to a
    // limit.
    for round in 0..rounds * PATIENCE {
        if round >= rounds && score.moved > 0 && score.removed > 0 {
            break;
        }
        arena.reset().await;
        let deleting = async {
            arena.hesitate(30).await;
            let delete = DeleteParams::default();
            arena.shop.releases().delete(WANTED, &delete).await
        };
        let (deployed, deleted) = join(arena.deploy(round, 4), deleting).await;
        assert!(
            deployed.is_ok() != deleted.is_ok(),
            "one of the two: {deployed:?} {deleted:?}"
        );
        arena.count(&mut score).await;
    }
    arena.tell("a blind delete against a move", rounds, &score);
    arena.verifies().await;
    assert_eq!(score.dangling, 0, "{score:?}");
    assert!(score.moved > 0 && score.removed > 0, "both win: {score:?}");
}

pub async fn gc_puts_back_what_a_pin_names_without_a_claim(target: Arc<Target>) {
    let mut arena = Arena::open(&target).await;
    let rounds = rounds(&target, 40, 800, 800);
    let mut score = Score::default();
    for round in 0..rounds {
        arena.reset().await;
        let plan = arena.collection(round);
        let pointing = async {
            arena.hesitate(40).await;
            // The test moves the ReleasePin only if the release still exists.
            if arena
                .shop
                .releases()
                .get_opt(WANTED)
                .await
                .unwrap()
                .is_some()
            {
                arena.point(WANTED).await;
            }
        };
        let ((), collected) = join(pointing, arena.collect(&plan)).await;
        if let Some(Collected::PutBack(_)) = &collected {
            score.put_back += 1;
        }
        arena.count(&mut score).await;
    }
    arena.tell("gc against a pin without a claim", rounds, &score);
    arena.verifies().await;
    assert!(score.dangling <= 4, "{score:?}");
}
