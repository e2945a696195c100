//! Tests with a store and a repository that the previous version of bowline made. tests/upgrade/README.md
//! describes what they contain.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::run;

/// A home directory with a copy of the data that the previous version made.
struct Old {
    home: tempfile::TempDir,
    flag: String,
}

fn data(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/upgrade").join(name)
}

impl Old {
    fn store() -> Self {
        let home = tempfile::tempdir().unwrap();
        let packed = std::fs::File::open(data("store.sqlite.gz")).unwrap();
        let mut bytes = Vec::new();
        let mut unpacked = flate2::read::GzDecoder::new(packed);
        unpacked.read_to_end(&mut bytes).unwrap();
        let file = home.path().join("store.sqlite");
        std::fs::write(&file, bytes).unwrap();
        let flag = format!("--embedded={}", file.display());
        Self { home, flag }
    }

    fn repository() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("shop");
        let old = Self {
            flag: format!("--repo={}", folder.display()),
            home,
        };
        let bundle = data("repository.bundle");
        let clone = format!("clone -q -b main {} shop", bundle.display());
        old.git(old.home.path(), &clone);
        for line in [
            "remote remove origin",
            "config user.name ana",
            "config user.email ana@shop.example",
        ] {
            old.git(&folder, line);
        }
        old
    }

    fn git(&self, folder: &Path, line: &str) {
        let ran = Command::new("git")
            .args(line.split(' '))
            .current_dir(folder)
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .output();
        let ran = ran.unwrap();
        assert!(
            ran.status.success(),
            "git {line}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }

    /// Runs a command line that must exit with `expected`. Returns stdout and stderr. A `_` in an argument
    /// becomes a space.
    fn ends(&self, line: &str, expected: i32) -> (String, String) {
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| word.replace('_', " "))
            .collect();
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.extend([self.flag.as_str(), "--namespace=shop"]);
        let (code, out, err) = run(self.home.path(), &arguments);
        assert_eq!(code, expected, "{line}: {out}{err}");
        (out, err)
    }

    fn done(&self, line: &str) -> String {
        self.ends(line, 0).0
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(&format!("{line} -o json"))).unwrap()
    }
}

/// Returns the text at a JSON pointer in each item; the empty text if the item has none.
fn column<'v>(items: &'v Value, pointer: &str) -> Vec<&'v str> {
    let items = items.as_array().unwrap().iter();
    let text = |item: &'v Value| item.pointer(pointer).and_then(Value::as_str);
    items.map(|item| text(item).unwrap_or_default()).collect()
}

/// Returns the first word of each name. A store has `ana`, and a repository has `ana <ana@shop.example>`.
fn first_words<'v>(names: Vec<&'v str>) -> Vec<&'v str> {
    let first = |name: &'v str| name.split(' ').next().unwrap_or_default();
    names.into_iter().map(first).collect()
}

/// Checks the objects that both the old store and the old repository contain.
fn lists(old: &Old) {
    let status = old.json("status");
    let cells = |component: &str| -> Vec<(String, bool)> {
        let rows = status["components"].as_array().unwrap();
        let row = rows.iter().find(|row| row["component"] == component);
        let cells = row.unwrap()["environments"].as_array().unwrap().iter();
        let cell = |cell: &Value| {
            (
                cell["release"].as_str().unwrap().to_owned(),
                cell["held"] == true,
            )
        };
        cells.map(cell).collect()
    };
    let cell = |release: &str, held| (release.to_owned(), held);
    assert_eq!(
        cells("checkout"),
        [
            cell("checkout-v1.6.0", false),
            cell("checkout-v1.4.0", true),
            cell("checkout-v1.4.0", true)
        ]
    );
    assert_eq!(
        cells("catalog"),
        [cell("catalog-v2.1.0", false), cell("catalog-v2.1.0", false)]
    );

    let history = old.json("history checkout -e production");
    assert_eq!(
        column(&history, "/cause/action"),
        ["Rollback", "Promote", "Promote"]
    );
    assert_eq!(
        first_words(column(&history, "/cause/actor")),
        ["ana", "ana", "ana"]
    );
    assert_eq!(
        column(&history, "/cause/reason"),
        ["INC-42 timeouts", "faster checkout", "first release"]
    );
    assert_eq!(
        column(&history, "/content/release/name"),
        ["checkout-v1.4.0", "checkout-v1.5.0", "checkout-v1.4.0"]
    );

    let entries = old.json("audit list catalog -e development");
    assert_eq!(
        column(&entries["items"], "/spec/action"),
        ["Deploy", "Deploy", "Deploy", "Pin", "Unpin", "Edit"]
    );
    assert_eq!(
        first_words(column(&entries["items"], "/spec/actor")),
        ["ben", "ben", "ben", "ben", "ben", "eve"]
    );
    // A hold that fixes another release than the releaseRef.
    let entries = old.json("audit list checkout -e staging");
    let held = &entries["items"][2]["spec"];
    assert_eq!(first_words(vec![held["actor"].as_str().unwrap()]), ["cem"]);
    assert_eq!(held["releaseRef"], "checkout-v1.5.0");
    assert_eq!(held["to"]["name"], "checkout-v1.4.0");
    assert_eq!(held["holds"][0]["reason"], "load test");
}

/// Performs actions on the old data. Returns how many audit entries the actions add.
fn acts(old: &Old) -> usize {
    old.done("unpin checkout -e staging --reason tested");
    old.done("promote checkout --from development --to staging --unready");
    old.done("rollback checkout -e staging --to checkout-v1.4.0 --reason INC-43");
    old.done("undo checkout -e staging --reason false_alarm");
    let pin = "pin checkout -e staging --release checkout-v1.5.0 --reason compare";
    let (_, err) = old.ends(pin, 5);
    assert!(err.contains("checkout-v1.5.0 is marked bad"), "{err}");
    old.done("mark good checkout-v1.5.0 --reason false_alarm");
    old.done(pin);
    old.done("mark bad catalog-v2.1.0 --reason INC-44");
    old.done("release create catalog --version v2.4.0 --embed");
    let removed = old.done("gc catalog --keep 1 --min-age 0s --yes");
    let is_release = |line: &&str| line.starts_with("release.openchoreo.dev/");
    let removed: Vec<&str> = removed.lines().filter(is_release).collect();
    let candidate = "release.openchoreo.dev/catalog-v2.3.0-rc2 removed";
    assert!(removed.contains(&candidate), "{removed:?}");

    let entries = old.json("audit list checkout -e staging");
    let items = &entries["items"];
    assert_eq!(
        column(items, "/spec/action"),
        [
            "Promote", "Promote", "Pin", "Unpin", "Promote", "Rollback", "Undo", "Pin"
        ]
    );
    assert_eq!(
        column(items, "/spec/to/name")[2..],
        [
            "checkout-v1.4.0",
            "checkout-v1.5.0",
            "checkout-v1.6.0",
            "checkout-v1.4.0",
            "checkout-v1.6.0",
            "checkout-v1.5.0"
        ]
    );
    assert_eq!(items[7]["spec"]["releaseRef"], "checkout-v1.6.0");
    7 + removed.len()
}

fn verifies(old: &Old, line: &str, entries: usize, warnings: &[&str]) {
    let verdict = old.json(line);
    assert_eq!(column(&verdict["problems"], "/what"), [""; 0]);
    assert_eq!(column(&verdict["warnings"], "/what"), warnings);
    assert_eq!(verdict["entries"], entries, "{verdict:#}");
    assert_eq!(verdict["chains"].as_array().unwrap().len(), 7);
}

#[test]
fn a_store_of_the_previous_version_is_listed_changed_and_verified() {
    let old = Old::store();
    // A run that writes nothing leaves the kinds of the previous version in the store.
    verifies(&old, "audit verify --readonly", 22, &[]);
    verifies(&old, "audit verify", 22, &[]);
    lists(&old);
    let entries = old.json("audit list");
    let actors = column(&entries["items"], "/spec/actor");
    let count = |name| actors.iter().filter(|actor| **actor == name).count();
    assert_eq!(
        ["ana", "ben", "cem", "dia", "eve"].map(count),
        [4, 13, 1, 3, 1]
    );
    let history = old.json("history checkout -e production");
    assert_eq!(history[0]["restoredFrom"], 1);
    let new = acts(&old);
    verifies(&old, "audit verify", 22 + new, &[]);
}

#[test]
fn a_repository_of_the_previous_version_is_listed_changed_and_verified() {
    let old = Old::repository();
    let edit = "edited by hand by eve <eve@shop.example>: back to the catalog of last week";
    verifies(&old, "audit verify", 24, &[edit]);
    lists(&old);
    let new = acts(&old);
    verifies(&old, "audit verify", 24 + new, &[edit]);
}
