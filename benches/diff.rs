//! Compares the speed of bowline's diff with `git diff --no-index --histogram` and GNU `diff` in the same
//! run.
//!
//! git and diff start as programs and read two files, as people use them, but bowline compares values in
//! memory. Only the ratios matter, because numbers of two runs or two machines cannot be compared.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bowline::engine::diff::{Options, diff, lines};
use serde_json::{Value, json};

/// The goal: bowline's diff takes at most this part of git's time. It applies to inputs of up to `GOAL_BYTES`
/// with few changed lines.
const GOAL_PART: f64 = 0.2;
/// The largest input to which the goal applies, in bytes.
const GOAL_BYTES: usize = 200_000;

fn main() {
    // `cargo test --benches` also runs this benchmark, with small inputs, to check that it works.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let sizes: &[usize] = match measured {
        true => &[5_000, 50_000, 200_000, 1_000_000],
        false => &[5_000],
    };
    let mut missed = Vec::new();
    for &bytes in sizes {
        let before = objects(bytes);
        for (name, after, is_goal) in [
            ("1 % changed", changed(&before, 1), true),
            ("10 % changed", changed(&before, 10), true),
            ("60 % changed", changed(&before, 60), false),
            ("reordered", reordered(&before), false),
        ] {
            let case = format!("{} KB, {name}", bytes / 1000);
            let is_goal = is_goal && bytes <= GOAL_BYTES;
            let rounds = if measured { 21 } else { 1 };
            missed.extend(run(&case, &before, &after, rounds, is_goal));
        }
    }
    match missed.is_empty() {
        true => println!("goals: met"),
        false => println!("goals: MISSED: {}", missed.join("; ")),
    }
}

/// Checks and measures one case. Returns a message for each missed goal.
fn run(case: &str, before: &[Value], after: &[Value], rounds: usize, is_goal: bool) -> Vec<String> {
    let (old, new) = (text(before), text(after));
    let options = Options::default();
    let found = lines(&old, &new, 3, None);
    assert_eq!(found.apply(&old).as_deref(), Some(new.as_str()), "{case}");
    let changes = found.hunks.iter().flat_map(|hunk| &hunk.lines);
    let changes = changes
        .filter(|line| line.before.is_none() || line.after.is_none())
        .count();

    let by_line = median(rounds, || {
        black_box(lines(&old, &new, 3, None));
    });
    let fields_only = Options {
        lines: false,
        ..options
    };
    let by_tree = median(rounds, || {
        black_box(diff(before, after, &fields_only));
    });
    let with_text = median(rounds, || {
        black_box(diff(before, after, &options).text());
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("before.yaml"), &old).unwrap();
    std::fs::write(folder.path().join("after.yaml"), &new).unwrap();
    let git_arguments = ["diff", "--no-index", "--histogram", "--no-color"];
    let (git, git_lines) = program(folder.path(), "git", &git_arguments, rounds);
    let (gnu, gnu_lines) = program(folder.path(), "diff", &["-u"], rounds);

    println!(
        "{case}: {} lines, changed: ours {changes}, git {git_lines}, diff {gnu_lines}",
        old.lines().count()
    );
    println!("  git {}, diff {}", ms(git), ms(gnu));
    let mut missed = Vec::new();
    for (what, seconds) in [
        ("lines", by_line),
        ("objects by field", by_tree),
        ("objects by line, as text", with_text),
    ] {
        let part = seconds / git;
        println!(
            "  {what} {}, of git {part:.3}, of diff {:.3}",
            ms(seconds),
            seconds / gnu
        );
        let limit = if is_goal { GOAL_PART } else { 1.0 };
        if part > limit {
            missed.push(format!("{case}: {what} takes {part:.2} of git's time"));
        }
    }
    missed
}

/// Measures a diff program on the two files. Returns its time and the number of changed lines that it prints.
fn program(folder: &Path, name: &str, arguments: &[&str], rounds: usize) -> (f64, usize) {
    let run = || {
        let mut command = Command::new(name);
        command.current_dir(folder).args(arguments);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
        let output = command
            .args(["before.yaml", "after.yaml"])
            .output()
            .unwrap();
        // git and diff exit with 1 if the files differ.
        assert_eq!(output.status.code(), Some(1), "{name}");
        String::from_utf8(output.stdout).unwrap()
    };
    let count = run()
        .lines()
        .filter(|line| line.starts_with(['+', '-']))
        .filter(|line| !line.starts_with("+++") && !line.starts_with("---"))
        .count();
    let seconds = median(rounds, || {
        black_box(run());
    });
    (seconds, count)
}

/// Returns Deployments and ConfigMaps. Their YAML has about `bytes` bytes in total.
fn objects(bytes: usize) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut size = 0;
    for number in 0.. {
        if size >= bytes {
            break;
        }
        let object = if number % 2 == 0 {
            deployment(number)
        } else {
            config_map(number)
        };
        size += bounded_yaml::write(&object).len();
        objects.push(object);
    }
    objects
}

fn deployment(number: usize) -> Value {
    let env: Vec<Value> = (0..20)
        .map(|at| json!({ "name": format!("SETTING_{at}"), "value": format!("value-{number}-{at}") }))
        .collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": format!("component-{number:05}"), "namespace": "shop", "labels": { "app": "shop" } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": format!("component-{number:05}") } },
            "template": {
                "metadata": { "labels": { "app": format!("component-{number:05}") } },
                "spec": {
                    "containers": [{
                        "name": "app",
                        "image": format!("registry.example/component:{number}"),
                        "env": env,
                        "ports": [{ "containerPort": 8080, "protocol": "TCP" }],
                        "resources": { "limits": { "cpu": "500m", "memory": "256Mi" }, "requests": { "cpu": "100m" } },
                    }],
                },
            },
        },
    })
}

fn config_map(number: usize) -> Value {
    let file: String = (0..30)
        .map(|at| format!("option.{at} = {}\n", number * 31 + at * 7))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": format!("component-{number:05}"), "namespace": "shop" },
        "data": { "settings.conf": file, "level": "info", "color": "blue" },
    })
}

/// Returns a copy of the objects in which about `percent` percent of the values and lines are changed.
fn changed(objects: &[Value], percent: u64) -> Vec<Value> {
    let mut seed = 7;
    let mut objects = objects.to_vec();
    for object in &mut objects {
        for part in ["spec", "data"] {
            if let Some(part) = object.get_mut(part) {
                change(part, percent, &mut seed);
            }
        }
    }
    objects
}

fn change(value: &mut Value, percent: u64, seed: &mut u64) {
    let mut is_hit = || {
        *seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*seed >> 33) % 100 < percent
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if key != "name" {
                    change(value, percent, seed);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| change(item, percent, seed)),
        Value::String(text) if text.contains('\n') => {
            let lines = text.lines().map(|line| match is_hit() {
                true => format!("{line}0\n"),
                false => format!("{line}\n"),
            });
            *text = lines.collect();
        }
        Value::String(text) if is_hit() => text.push_str("-new"),
        Value::Number(number) if is_hit() => *value = (number.as_u64().unwrap() + 1).into(),
        _ => {}
    }
}

/// Returns a copy of the objects in another order. Their environment variables are in another order too.
fn reordered(objects: &[Value]) -> Vec<Value> {
    let mut objects = objects.to_vec();
    for object in &mut objects {
        let env = object.pointer_mut("/spec/template/spec/containers/0/env");
        if let Some(env) = env.and_then(Value::as_array_mut) {
            env.rotate_left(10);
        }
    }
    let half = objects.len() / 2;
    objects.rotate_left(half);
    objects
}

fn text(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(bounded_yaml::write).collect();
    documents.join("---\n")
}

fn median(rounds: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn ms(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
