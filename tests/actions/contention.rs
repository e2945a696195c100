//! Many operators change the release of the same ReleasePin at the same time. One change succeeds, and the
//! errors of the other operators name the operator who was faster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bowline::engine::plan::Plan;
use bowline::engine::publish::{Applied, ApplyError, apply};
use bowline::engine::world::{Key, World};
use futures::FutureExt;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::sync::Barrier;

use crate::place::Target;
use crate::proxy::{Gate, Proxy};
use crate::shop::Shop;
use crate::sized;
use crate::user::{User, ended};

const OPERATORS: usize = 50;

/// Returns one of the two releases that are not `current`. `number` selects which one.
fn another(current: &str, number: usize) -> String {
    let all = ["cart-1", "cart-2", "cart-3"];
    let others: Vec<_> = all.into_iter().filter(|name| *name != current).collect();
    others[number % others.len()].to_owned()
}

/// Returns one plan per operator. All plans use the same state of the read model.
fn plans(shop: &Shop, world: &World, round: usize) -> Vec<Plan> {
    let pin = world.pin(&Key::new(&shop.target.namespace, "cart-dev"));
    let current = pin.unwrap().release.to_string();
    let plan = |number: usize| {
        let user = format!("operator-{number}");
        let operation = format!("round-{round}-{user}");
        shop.deployment(world, &another(&current, number), &operation, &user)
    };
    (0..OPERATORS).map(plan).collect()
}

/// Fifty operators plan a change of the same ReleasePin, and apply their plans at the same time.
pub async fn one_of_fifty_wins(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let clients: Vec<_> = (0..OPERATORS)
        .map(|number| target.client_of(&format!("operator-{number}")))
        .collect();
    let mut feed = shop.feed().await;
    let rounds = sized(3, 200);
    let (mut losers, begun) = (0, Instant::now());
    for round in 0..rounds {
        let plans = plans(&shop, &feed.world(), round);
        let applying = clients.iter().zip(&plans);
        let applying =
            applying.map(|(client, plan)| apply(client, plan, &plan.changes[0], &Timestamp::now));
        let results = join_all(applying).await;
        let pin = shop.pins().get("cart-dev").await.unwrap();
        let generation = round as i64 + 2;
        assert_eq!(pin.metadata.generation, Some(generation));
        let winner = pin.changed_by().unwrap();
        let told = format!(
            "cart-dev was changed to {} by {winner} at {}, so nothing was changed",
            pin.spec.release_ref.name,
            pin.operation().unwrap().unwrap().at.0
        );
        let mut winners = Vec::new();
        for (number, result) in results.into_iter().enumerate() {
            match result {
                Ok(Applied::Done(revision)) => {
                    assert_eq!(revision, generation);
                    winners.push(format!("operator-{number}"));
                }
                Err(error @ ApplyError::Stale { .. }) => {
                    assert_eq!(error.to_string(), told);
                    losers += 1;
                }
                other => panic!("operator-{number}: {other:?}"),
            }
        }
        assert_eq!(winners, [winner], "one, and the one that the pin names");
        let key = Key::new(&target.namespace, "cart-dev");
        let seen = |world: &World| {
            let pin = world.pin(&key);
            pin.is_some_and(|pin| pin.generation == generation)
        };
        feed.until(seen).await;
    }
    let entries = shop.chain("cart-dev").await;
    assert_eq!(entries.len(), rounds + 1);
    println!(
        "{}: {OPERATORS} operators, one pin, {rounds} rounds in {:.1} s: one winner each, {losers} losers told who, what and when; {} entries verify",
        target.name,
        begun.elapsed().as_secs_f64(),
        entries.len(),
    );
}

/// Many processes change the same ReleasePin. All processes plan before the first process applies its plan.
pub async fn one_of_many_processes_wins(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let processes = sized(6, OPERATORS);
    let users = (0..processes).map(|number| format!("operator-{number}"));
    target.grant(users).await;
    let barrier = Arc::new(Barrier::new(processes));
    let gate: Gate = Arc::new(move |write| {
        let barrier = barrier.clone();
        async move {
            if write.resource == "releasepins" && !write.answered {
                barrier.wait().await;
            }
            true
        }
        .boxed()
    });
    let proxy = Proxy::start(shop.client.clone(), gate).await;
    let flags = proxy.flags(&target);
    let begun = Instant::now();
    let runs = (0..processes).map(|number| {
        let mut flags = flags.clone();
        flags.push(format!("--as=operator-{number}"));
        let release = another("cart-2", number);
        let line = format!("deploy cart -e dev --release {release}");
        ended(User::with(&target, flags).start(&line))
    });
    let ran = join_all(runs).await;
    let pin = shop.pins().get("cart-dev").await.unwrap();
    assert_eq!(pin.metadata.generation, Some(2));
    let (winner, release) = (pin.changed_by().unwrap(), &pin.spec.release_ref.name);
    let at = pin.operation().unwrap().unwrap().at.0;
    let told = format!(
        "error: cart-dev: cart-dev was changed to {release} by {winner} at {at}, so nothing was changed\n"
    );
    for (number, ran) in ran.iter().enumerate() {
        if format!("operator-{number}") == winner {
            assert_eq!(ran.code, 0, "{}", ran.err);
            let done = format!("cart in dev: cart-2 -> {release} (revision 2)\n");
            assert_eq!(ran.out, done);
        } else {
            assert_eq!((ran.code, ran.err.as_str()), (4, told.as_str()));
        }
    }
    assert_eq!(shop.chain("cart-dev").await.len(), 2);
    println!(
        "{}: {processes} processes, one pin, in {:.1} s: one exit code 0, the others 4",
        target.name,
        begun.elapsed().as_secs_f64(),
    );
}

/// Many processes change the same ReleasePin in a repository. All processes plan before the first process
/// commits.
pub async fn one_of_many_commits_wins(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let processes = sized(4, 20);
    let before = target.git("rev-list --count HEAD");
    // Every commit needs this lock file, so all processes wait until the test releases the lock.
    let notes = target.home.path().join("deploy/.git/bowline");
    std::fs::create_dir_all(&notes).unwrap();
    let turn = std::fs::File::create(notes.join("lock")).unwrap();
    turn.lock().unwrap();
    let begun = Instant::now();
    let runs: Vec<_> = (0..processes)
        .map(|number| {
            let release = another("cart-2", number);
            let line = format!("deploy cart -e dev --release {release}");
            User::of(&target).start(&line)
        })
        .collect();
    let inode = std::os::unix::fs::MetadataExt::ino(&turn.metadata().unwrap());
    let inode = format!(":{inode} ");
    // The kernel lists each process that waits for the lock once or twice, as `1: -> FLOCK ADVISORY WRITE pid
    // ...`.
    let waiting = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let waiting = locks.lines().filter(|line| line.contains("->"));
        let waiting = waiting.filter(|line| line.contains(&inode));
        let pids = waiting.filter_map(|line| line.split_whitespace().nth(5));
        pids.map(str::to_owned).collect::<BTreeSet<String>>().len()
    };
    let all = async {
        while waiting() < processes {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(crate::HANG, all).await;
    waited.expect("all of them have planned");
    drop(turn);
    let ran = join_all(runs.into_iter().map(ended)).await;
    let winners: Vec<_> = ran.iter().filter(|ran| ran.code == 0).collect();
    assert_eq!(winners.len(), 1, "one of them wins");
    assert!(
        winners[0].out.contains("(revision 2)"),
        "{}",
        winners[0].out
    );
    for loser in ran.iter().filter(|ran| ran.code != 0) {
        assert_eq!(loser.code, 4, "{}", loser.err);
        let told = "releasepins/dev/cart.yaml has changed since the plan was made";
        assert!(loser.err.contains(told), "{}", loser.err);
    }
    assert_eq!(shop.chain("cart-dev").await.len(), 2);
    let count = |text: String| text.parse::<u64>().unwrap();
    let after = target.git("rev-list --count HEAD");
    assert_eq!(count(after), count(before) + 1);
    assert_eq!(target.git("status --porcelain"), "");
    println!(
        "{}: {processes} processes, one pin, in {:.1} s: one commit, the others are told what changed",
        target.name,
        begun.elapsed().as_secs_f64(),
    );
}
