//! Kills the controller (kill -9) at random times while ReleasePins change. The next controller must complete
//! all work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures::StreamExt;

use crate::dice::Dice;
use crate::pins::Pins;
use crate::place::Target;
use crate::process::{Process, system_namespace};
use crate::sized;
use crate::user::User;

pub async fn a_killed_controller_loses_nothing(target: Arc<Target>) {
    if target.name == "cluster" {
        system_namespace(&target).await;
    }
    // In the full form, 67 components in three environments give 201 ReleasePins.
    let pins = Pins::open(&target, sized(4, 67)).await;
    let flags = target.flags();
    let kills = sized(4, 50);
    let begun = Instant::now();
    let ended = AtomicBool::new(false);
    let killing = async {
        let mut dice = Dice(7);
        for kill in 0..kills {
            let process = Process::start(&target, &format!("p{kill}"), flags.clone()).await;
            if target.name == "cluster" {
                process.until_it_leads(&target).await;
            }
            // The process is killed after a random number of changes: before its first list, or in the middle
            // of its work.
            let changes = pins.feed.touched().take(dice.roll(60) as usize);
            changes.for_each(|_| std::future::ready(())).await;
            process.kill();
        }
        ended.store(true, Ordering::SeqCst);
    };
    // The last move runs to its end, because the server may still execute an interrupted move later.
    let moving = async {
        let mut dice = Dice(11);
        let all: Vec<_> = pins.all().collect();
        let mut wanted: BTreeMap<(&str, &str), String> = BTreeMap::new();
        while !ended.load(Ordering::SeqCst) {
            let (component, environment) = all[dice.roll(all.len() as u64) as usize];
            let version = (1 + dice.roll(3)).to_string();
            pins.move_one(component, environment, &version).await;
            wanted.insert((component, environment), version);
        }
        wanted
    };
    let ((), wanted) = futures::join!(killing, moving);
    let last = Process::start(&target, "last", flags).await;
    pins.agree().await;
    pins.verify(|component, environment| {
        let moved = wanted.get(&(component, environment)).cloned();
        moved.unwrap_or_else(|| "1".to_owned())
    })
    .await;
    let verified = User::of(&target).run("audit verify").await;
    assert_eq!(verified.code, 0, "{}", verified.err);
    assert!(!verified.err.contains("warning"), "{}", verified.err);
    assert_eq!(last.stop().await.code(), Some(0));
    println!(
        "{}: {kills} kills while {} of {} pins moved: everything is there once and as its pin says; audit verify: valid without gaps; in {:.1} s",
        target.name,
        wanted.len(),
        pins.all().count(),
        begun.elapsed().as_secs_f64(),
    );
}
