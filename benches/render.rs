//! Compares the speed of rendering with `helm template` and `kustomize build` in the same run. All three
//! render checkout-service of deploy/examples for production-eu, and the benchmark first checks that they
//! give the same manifests. Numbers of two runs or two machines cannot be compared.
//!
//! The controllers render by a function call, but helm and kustomize are programs that have to start. So the
//! benchmark measures bowline both as a program and as a function call. It skips a program that is not
//! installed.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/cluster/binaries.rs"]
#[allow(dead_code)] // this benchmark uses only kubectl
mod binaries;
#[path = "render"]
mod render {
    pub mod helm;
    pub mod shop;
}

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use bowline::render::{Library, Rendered};
use render::helm;
use render::shop::Shop;
use serde_json::Value;

const COMPONENT: &str = "checkout-service";
const ENVIRONMENT: &str = "production-eu";
const NAMESPACE: &str = "shop-production-eu";
/// A goal: the longest time of one rendering, in milliseconds.
const GOAL_MS: f64 = 2.0;
/// A goal: how many times faster than the other programs bowline must be.
const GOAL_TIMES: f64 = 10.0;

fn main() {
    // `cargo test --benches` also runs this benchmark, with few rounds, to check that it works.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let rounds = |rounds: usize| if measured { rounds } else { 1 };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shop = Shop::read(&root.join("deploy/examples"));

    let library = Library::new();
    let rendered = shop.render(&shop.definitions(COMPONENT), ENVIRONMENT, &library);
    let bytes = serde_json::to_vec(&shop.definitions(COMPONENT)).unwrap();
    println!(
        "{COMPONENT} in {ENVIRONMENT}: {:.1} KB of definitions become {} resources, {:.1} KB of YAML",
        bytes.len() as f64 / 1e3,
        rendered.resources.len(),
        rendered.yaml().len() as f64 / 1e3
    );

    let call = print_calls(&shop, &library, rounds(300));
    print_programs(root, &shop, &rendered, call, rounds(15));
    print_growth(
        &shop,
        &library,
        if measured {
            &[100, 1_000, 10_000]
        } else {
            &[10]
        },
    );
}

/// Measures the rendering as a function call, with and without the cache of compiled expressions. Returns the
/// seconds per call with the cache.
fn print_calls(shop: &Shop, library: &Library, rounds: usize) -> f64 {
    let definitions = shop.definitions(COMPONENT);
    let first = median(rounds.div_ceil(10), || {
        black_box(shop.render(&definitions, ENVIRONMENT, &Library::new()));
    });
    let again = median(rounds, || {
        black_box(shop.render(&definitions, ENVIRONMENT, library));
    });
    let text = median(rounds, || {
        black_box(shop.render(&definitions, ENVIRONMENT, library).yaml());
    });
    for (what, seconds) in [
        ("first, expressions compiled", first),
        ("again", again),
        ("again, and written as YAML", text),
    ] {
        println!("render one component, {what} = {}", ms(seconds));
    }
    println!(
        "goal: again under {GOAL_MS} ms: {}",
        met(again * 1e3 < GOAL_MS)
    );
    again
}

/// Measures each program as people use it: one start per component.
fn print_programs(root: &Path, shop: &Shop, ours: &Rendered, call: f64, rounds: usize) {
    let chart = root.join("benches/assets/chart");
    let mut programs: Vec<(&str, Result<PathBuf, String>, Vec<String>)> = Vec::new();
    programs.push((
        "bowline render -f",
        Ok(env!("CARGO_BIN_EXE_bowline").into()),
        vec![
            "render".into(),
            "-f".into(),
            shop.folder.display().to_string(),
            COMPONENT.into(),
            "--environment".into(),
            ENVIRONMENT.into(),
        ],
    ));
    programs.push((
        "helm template",
        helm::find(),
        vec![
            "template".into(),
            COMPONENT.into(),
            chart.display().to_string(),
            format!("--values={}", chart.join("checkout-service.yaml").display()),
            format!("--values={}", chart.join("production-eu.yaml").display()),
            format!("--namespace={NAMESPACE}"),
        ],
    ));
    programs.push((
        "kubectl kustomize",
        binaries::Binaries::find().map(|found| found.kubectl),
        vec![
            "kustomize".into(),
            root.join("benches/assets/kustomize/production-eu")
                .display()
                .to_string(),
        ],
    ));
    let ours: Manifests = ours
        .resources
        .iter()
        .map(|resource| keyed(Value::Object(resource.object.clone())))
        .collect();
    let mut own = None;
    for (name, program, arguments) in programs {
        let run = || {
            let program = program.clone()?;
            let output = Command::new(program)
                .args(&arguments)
                .output()
                .map_err(|error| error.to_string())?;
            match output.status.success() {
                true => Ok(output.stdout),
                false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            }
        };
        let theirs = match run() {
            Ok(text) => manifests(name, &String::from_utf8(text).unwrap()),
            Err(error) => {
                println!("{name}: left out: {}", error.trim_end());
                continue;
            }
        };
        if let Some(difference) = difference(&ours, &theirs) {
            panic!("{name} does not render what the call renders: {difference}");
        }
        let seconds = median(rounds, || {
            black_box(run().unwrap());
        });
        println!(
            "{name}, the same {} resources = {}",
            theirs.len(),
            ms(seconds)
        );
        match own {
            None if name.starts_with("bowline") => own = Some(seconds),
            _ => {
                let times = seconds / call;
                println!("ratio {name} / the call = {times:.0}");
                println!(
                    "goal: at least {GOAL_TIMES} times faster: {}",
                    met(times >= GOAL_TIMES)
                );
                if let Some(own) = own {
                    println!("ratio {name} / bowline render -f = {:.1}", seconds / own);
                }
            }
        }
    }
}

/// Measures the rendering of growing numbers of components. Each component has its own parameters.
fn print_growth(shop: &Shop, library: &Library, counts: &[usize]) {
    let mut definitions = shop.definitions(COMPONENT);
    let mut fewest = None;
    for &count in counts {
        let mut times: Vec<f64> = (0..count)
            .map(|number| {
                vary(&mut definitions, number);
                time(|| {
                    black_box(shop.render(&definitions, ENVIRONMENT, library));
                })
            })
            .collect();
        let all: f64 = times.iter().sum();
        let each = middle(&mut times);
        let fewest = *fewest.get_or_insert(each);
        println!(
            "render {count} components = {all:.3} s, {} each in the middle, ratio to the fewest = {:.2}",
            ms(each),
            each / fewest
        );
    }
}

fn vary(definitions: &mut bowline::api::Definitions, number: usize) {
    let name = format!("component-{number}");
    let parameters = &mut definitions.component.spec.parameters;
    let settings = parameters
        .get_mut("settings")
        .and_then(Value::as_object_mut);
    settings
        .unwrap()
        .insert("NUMBER".into(), name.as_str().into());
    parameters.insert(
        "args".into(),
        vec!["serve".to_owned(), format!("--seed={number}")].into(),
    );
    definitions.component.metadata.name = Some(name);
}

type Manifests = BTreeMap<[String; 3], Value>;

fn manifests(origin: &str, text: &str) -> Manifests {
    let documents = bounded_yaml::documents(origin, text).unwrap();
    let values = documents.into_iter().map(|document| document.value);
    values.filter(|value| !value.is_null()).map(keyed).collect()
}

fn keyed(object: Value) -> ([String; 3], Value) {
    let key = ["/kind", "/metadata/namespace", "/metadata/name"].map(|at| {
        object
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    });
    (key, object)
}

/// Returns the first difference between two sets of manifests; None if they are equal.
fn difference(ours: &Manifests, theirs: &Manifests) -> Option<String> {
    let keys = ours.keys().chain(theirs.keys());
    keys.into_iter().find_map(|key| {
        let name = key.join(" ");
        match (ours.get(key), theirs.get(key)) {
            (Some(ours), Some(theirs)) => differs(ours, theirs, &name),
            (Some(_), None) => Some(format!("{name} is missing")),
            _ => Some(format!("{name} is too much")),
        }
    })
}

fn differs(ours: &Value, theirs: &Value, at: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).find_map(|key| {
            let null = &Value::Null;
            let at = format!("{at}/{key}");
            differs(a.get(key).unwrap_or(null), b.get(key).unwrap_or(null), &at)
        }),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(number, (a, b))| differs(a, b, &format!("{at}/{number}"))),
        _ if ours == theirs => None,
        _ => Some(format!("{at} is {theirs}, not {ours}")),
    }
}

fn median(rounds: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds).map(|_| time(&mut run)).collect();
    middle(&mut times)
}

fn time(run: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_secs_f64()
}

fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn ms(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}

fn met(is: bool) -> &'static str {
    if is { "met" } else { "MISSED" }
}
