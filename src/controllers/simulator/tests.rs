//! Tests the simulated steps of each kind, and that every rollout ends.

use serde_json::{Value, json};

use super::*;
use crate::api::choreo::rendered::Health;
use crate::engine::health::{self, Facts};

/// A simulated object, and the states of its status until the status no longer changed.
struct Played {
    object: Value,
    status: Object,
    steps: Vec<Object>,
}

impl Played {
    fn new(object: Value) -> Self {
        Self {
            object,
            status: Object::new(),
            steps: Vec::new(),
        }
    }

    fn play(&mut self, step: Step, faulty: &[&str]) -> &mut Self {
        let faulty: Vec<String> = faulty.iter().map(|it| (*it).to_owned()).collect();
        self.steps.clear();
        loop {
            let next = step(&Scene {
                object: &self.object,
                status: self.status.clone(),
                faulty: &faulty,
                now: "2026-01-06T12:00:00Z",
            });
            if next == self.status {
                return self;
            }
            self.steps.push(next.clone());
            self.status = next;
            assert!(
                self.steps.len() < 200,
                "it comes to no end: {:#}",
                json!(self.status)
            );
        }
    }

    fn change(&mut self, pointer: &str, value: Value) -> &mut Self {
        *self.object.pointer_mut(pointer).unwrap() = value;
        let generation = self.object["metadata"]["generation"].as_i64().unwrap();
        self.object["metadata"]["generation"] = json!(generation + 1);
        self
    }

    fn health(&self, status: &Object) -> (Health, String) {
        let version = self.object["apiVersion"].as_str().unwrap();
        let verdict = health::of(&Facts {
            group: version.split_once('/').map_or("", |(group, _)| group),
            kind: self.object["kind"].as_str().unwrap(),
            generation: self.object["metadata"]["generation"].as_i64(),
            deleting: false,
            spec: self.object["spec"].as_object().unwrap(),
            status: Some(status),
        });
        (verdict.health, verdict.message.unwrap_or_default())
    }

    fn ends(&self) -> (Health, String) {
        for status in &self.steps[..self.steps.len().saturating_sub(1)] {
            let (health, _) = self.health(status);
            assert_ne!(health, Health::Healthy, "too early: {:#}", json!(status));
        }
        self.health(&self.status)
    }

    fn counts(&self, field: &str) -> Vec<i64> {
        let count = |status: &Object| {
            status
                .get(field)
                .and_then(Value::as_i64)
                .unwrap_or_default()
        };
        self.steps.iter().map(count).collect()
    }
}

fn workload(kind: &str, replicas: i64) -> Played {
    Played::new(json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "generation": 1},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "main", "image": "web:v1"}]}},
        },
    }))
}

const IMAGE: &str = "/spec/template/spec/containers/0/image";

#[test]
fn a_deployment_rolls_out_one_by_one() {
    let mut web = workload("Deployment", 3);
    web.play(rollouts::step, &[]);
    assert_eq!(web.ends(), (Health::Healthy, "3 of 3 ready".to_owned()));
    assert_eq!(web.counts("readyReplicas"), [0, 0, 1, 2, 3]);
    web.change(IMAGE, json!("web:v2")).play(rollouts::step, &[]);
    assert_eq!(web.ends().0, Health::Healthy);
    assert_eq!(web.counts("updatedReplicas").first(), Some(&0));
    for (all, ready) in web
        .counts("replicas")
        .into_iter()
        .zip(web.counts("readyReplicas"))
    {
        assert!((3..=4).contains(&all) && ready >= 3, "{all} and {ready}");
    }
    web.change("/spec/replicas", json!(5))
        .play(rollouts::step, &[]);
    assert_eq!(web.ends(), (Health::Healthy, "5 of 5 ready".to_owned()));
    web.change("/spec/replicas", json!(1))
        .play(rollouts::step, &[]);
    assert_eq!(web.ends(), (Health::Healthy, "1 of 1 ready".to_owned()));
    web.change("/spec/replicas", json!(0))
        .play(rollouts::step, &[]);
    assert_eq!(web.ends(), (Health::Healthy, "0 of 0 ready".to_owned()));
    assert_eq!(web.play(rollouts::step, &[]).steps.len(), 0);
}

#[test]
fn a_faulty_image_crashes_and_the_old_replicas_stay() {
    let mut web = workload("Deployment", 3);
    web.play(rollouts::step, &[]);
    web.change(IMAGE, json!("web:v2"))
        .play(rollouts::step, &["web:v2"]);
    let (health, message) = web.ends();
    assert_eq!(health, Health::Degraded);
    assert!(
        message.starts_with("3 of 3 ready, CrashLoopBackOff: container main, image web:v2"),
        "{message}"
    );
    // The user sets the old image again, or removes the image from the list of faulty images. Both continue
    // the rollout.
    let mut back = Played {
        object: web.object.clone(),
        status: web.status.clone(),
        steps: Vec::new(),
    };
    back.change(IMAGE, json!("web:v1"))
        .play(rollouts::step, &["web:v2"]);
    assert_eq!(back.ends(), (Health::Healthy, "3 of 3 ready".to_owned()));
    web.play(rollouts::step, &[]);
    assert_eq!(web.ends(), (Health::Healthy, "3 of 3 ready".to_owned()));
    let mut first = workload("Deployment", 2);
    first.play(rollouts::step, &["web:*"]);
    assert!(first.ends().1.starts_with("0 of 2 ready, CrashLoopBackOff"));
}

#[test]
fn a_deployment_that_is_paused_or_made_anew() {
    let mut web = workload("Deployment", 2);
    web.play(rollouts::step, &[]);
    web.object["spec"]["paused"] = json!(true);
    web.change(IMAGE, json!("web:v2")).play(rollouts::step, &[]);
    assert_eq!(web.ends().0, Health::Suspended);
    web.object["spec"]["strategy"] = json!({"type": "Recreate"});
    web.change("/spec/paused", json!(false))
        .play(rollouts::step, &[]);
    assert_eq!(web.counts("readyReplicas").first(), Some(&0));
    assert_eq!(web.ends().0, Health::Healthy);
}

#[test]
fn a_stateful_set_and_a_daemon_set_change_one_at_a_time() {
    let cases: [(&str, Step, &str); 2] = [
        ("StatefulSet", stateful::step, "readyReplicas"),
        ("DaemonSet", daemons::step, "numberReady"),
    ];
    for (kind, step, ready) in cases {
        let mut set = workload(kind, 3);
        set.play(step, &[]);
        assert_eq!(
            set.ends(),
            (Health::Healthy, "3 of 3 ready".to_owned()),
            "{kind}"
        );
        set.change(IMAGE, json!("web:v2")).play(step, &[]);
        assert_eq!(set.ends().0, Health::Healthy, "{kind}");
        assert!(
            set.counts(ready).iter().all(|count| *count >= 2),
            "{kind}: {:?}",
            set.counts(ready)
        );
        set.change(IMAGE, json!("web:v3")).play(step, &["web:v3"]);
        let (health, message) = set.ends();
        assert_eq!(health, Health::Degraded, "{kind}");
        assert!(
            message.starts_with("2 of 3 ready, CrashLoopBackOff"),
            "{kind}: {message}"
        );
        set.change(IMAGE, json!("web:v2")).play(step, &["web:v3"]);
        assert_eq!(
            set.ends(),
            (Health::Healthy, "3 of 3 ready".to_owned()),
            "{kind}"
        );
        assert_eq!(set.play(step, &[]).steps.len(), 0, "{kind}");
    }
    let mut set = workload("StatefulSet", 3);
    set.play(stateful::step, &[])
        .change("/spec/replicas", json!(1))
        .play(stateful::step, &[]);
    assert_eq!(set.ends(), (Health::Healthy, "1 of 1 ready".to_owned()));
    set.change("/spec/replicas", json!(4))
        .play(stateful::step, &[]);
    assert_eq!(set.ends(), (Health::Healthy, "4 of 4 ready".to_owned()));
}

#[test]
fn jobs_end() {
    let job = |spec: Value| {
        let mut spec = spec;
        spec["template"] = json!({"spec": {"containers": [{"name": "main", "image": "web:v1"}]}});
        Played::new(
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "generation": 1}, "spec": spec}),
        )
    };
    let mut three = job(json!({"completions": 3}));
    three.play(jobs::step, &[]);
    assert_eq!(three.ends(), (Health::Healthy, "is complete".to_owned()));
    assert_eq!(three.counts("succeeded"), [0, 1, 2, 3]);
    let mut crashing = job(json!({"backoffLimit": 2}));
    crashing.play(jobs::step, &["web:v1"]);
    assert_eq!(crashing.ends().0, Health::Degraded);
    assert_eq!(crashing.counts("failed").last(), Some(&3));
    let mut suspended = job(json!({"suspend": true}));
    suspended.play(jobs::step, &[]);
    assert_eq!(suspended.ends().0, Health::Suspended);
    suspended
        .change("/spec/suspend", json!(false))
        .play(jobs::step, &[]);
    assert_eq!(suspended.ends().0, Health::Healthy);
}

#[test]
fn pods_run_crash_or_end() {
    let pod = |restart: &str| {
        Played::new(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "generation": 1},
            "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "web:v1"}, {"name": "side", "image": "side"}]},
        }))
    };
    let mut runs = pod("Always");
    assert_eq!(
        runs.play(pods::step, &[]).ends(),
        (Health::Healthy, "is ready".to_owned())
    );
    let mut crashes = pod("Always");
    assert_eq!(
        crashes.play(pods::step, &["web:v1"]).ends(),
        (Health::Degraded, "main: CrashLoopBackOff".to_owned())
    );
    assert_eq!(
        crashes.play(pods::step, &[]).ends(),
        (Health::Healthy, "is ready".to_owned())
    );
    let mut ends = pod("Never");
    ends.play(pods::step, &[]);
    assert_eq!(ends.status["phase"], "Succeeded");
    let mut owned = pod("Always");
    owned.object["metadata"]["ownerReferences"] = json!([{"name": "web"}]);
    assert_eq!(owned.play(pods::step, &[]).steps.len(), 0);
}

#[test]
fn claims_are_met() {
    let object = |api: &str, kind: &str, spec: Value| {
        Played::new(
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "a", "generation": 1}, "spec": spec}),
        )
    };
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let mut claim = object("v1", "PersistentVolumeClaim", claim);
    assert_eq!(
        claim.play(claims::volume, &[]).ends(),
        (Health::Healthy, "is bound".to_owned())
    );
    assert_eq!(claim.status["capacity"]["storage"], "1Gi");
    let mut balancer = object("v1", "Service", json!({"type": "LoadBalancer"}));
    assert_eq!(
        balancer.play(claims::service, &[]).ends(),
        (Health::Healthy, "has an address".to_owned())
    );
    let mut inside = object("v1", "Service", json!({"type": "ClusterIP"}));
    assert_eq!(inside.play(claims::service, &[]).steps.len(), 0);
    let mut scaler = object(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        json!({"minReplicas": 2}),
    );
    assert_eq!(
        scaler.play(claims::autoscaler, &[]).ends().0,
        Health::Healthy
    );
    assert_eq!(scaler.status["currentReplicas"], 2);
    scaler
        .change("/spec/minReplicas", json!(3))
        .play(claims::autoscaler, &[]);
    assert_eq!(scaler.status["currentReplicas"], 3);
}

#[test]
fn images_are_listed_whole_or_by_their_beginning() {
    for (faulty, image, expected) in [
        ("web:v1", "web:v1", true),
        ("web:v1", "web:v10", false),
        ("web:*", "web:v10", true),
        ("web*", "shop/web", false),
        ("*", "any", true),
    ] {
        assert_eq!(matches(faulty, image), expected, "{faulty} {image}");
    }
    let mut there = workload("Deployment", 1);
    there.object["metadata"]["namespace"] = json!("shop-production");
    there.play(rollouts::step, &["web:v1 in shop-staging"]);
    assert_eq!(there.ends().0, Health::Healthy);
    there
        .change(IMAGE, json!("web:v2"))
        .play(rollouts::step, &["web:* in shop-production"]);
    assert_eq!(there.ends().0, Health::Degraded);
    let mut plane = DataPlane::default();
    assert_eq!(listed(&plane), [""; 0]);
    plane.annotations_mut().insert(
        labels::FAULTY_IMAGES.to_owned(),
        " web:v1, ,cart:*,".to_owned(),
    );
    assert_eq!(listed(&plane), ["web:v1", "cart:*"]);
}
