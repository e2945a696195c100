//! Actions on a repository: each action makes one commit. The user pushes the commits with a separate command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::Story;
use super::shop::{fill, shop};
use crate::api::{Release, ReleasePin};
use crate::connect::{self, Environment, Options, StoreFile};
use crate::fixture;

/// The work tree of a story. Its remote is a bare repository in the same directory.
struct Work {
    root: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl Work {
    /// Writes the shop as files, commits them, and pushes the commit.
    async fn of_shop(home: &Path) -> Self {
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        let work = Self {
            root: home.join("deploy"),
            variables: BTreeMap::from([
                variable("HOME", home.into()),
                variable("GIT_CONFIG_NOSYSTEM", "1".into()),
                variable("PATH", std::env::var_os("PATH").unwrap()),
            ]),
        };
        work.write("shop.yaml", &shop());
        for (file, text) in objects(home).await {
            work.write(&file, &text);
        }
        work.git("init -q -b main");
        work.git("config user.name Ana");
        work.git("config user.email ana@example.com");
        work.commit("begin");
        work.git("clone -q --bare . ../origin.git");
        work.git("remote add origin ../origin.git");
        work.git("fetch -q origin");
        work.git("branch -q -u origin/main");
        work
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root.join(file)).unwrap()
    }

    fn git(&self, line: &str) -> String {
        self.git_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    fn git_words(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(&self.root).env_clear();
        let output = command.envs(&self.variables).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {said}");
        let said = String::from_utf8(output.stdout).unwrap();
        said.trim_end().to_owned()
    }

    fn commit(&self, subject: &str) {
        self.git("add -A");
        self.git_words(&["commit", "-q", "-m", subject]);
    }

    /// Returns the number of commits, and the subject of the last commit.
    fn log(&self) -> (String, String) {
        let count = self.git("rev-list --count HEAD");
        (count, self.git("log -1 --format=%s"))
    }

    /// Returns the abbreviated id of the last commit of the work tree.
    fn head(&self) -> String {
        self.git("rev-parse --short=12 HEAD")
    }
}

/// Returns the releases and ReleasePins of the shop as (path, text).
async fn objects(home: &Path) -> Vec<(String, String)> {
    let store = home.join("filled.db");
    fixture::store::place(&store);
    let options = Options {
        embedded: Some(StoreFile::At(store)),
        ..Options::default()
    };
    let environment = Environment {
        user: "ana".to_owned(),
        ..Environment::default()
    };
    let connection = connect::connect(&options, &environment).await.unwrap();
    fill(&connection).await;
    let document = |kind: &str, name: &str, spec: Value| {
        bounded_yaml::write(&json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        }))
    };
    let mut files = Vec::new();
    let releases: Api<Release> = Api::default_namespaced(connection.client.clone());
    for release in releases.list(&ListParams::default()).await.unwrap() {
        let name = release.name_any();
        let spec = serde_json::to_value(&release.spec).unwrap();
        let file = format!("releases/{name}.yaml");
        files.push((file, document("Release", &name, spec)));
    }
    let pins: Api<ReleasePin> = Api::default_namespaced(connection.client.clone());
    for pin in pins.list(&ListParams::default()).await.unwrap() {
        let spec = serde_json::to_value(&pin.spec).unwrap();
        let file = format!("pins/{}/{}.yaml", pin.spec.environment, pin.spec.component);
        files.push((file, document("ReleasePin", &pin.name_any(), spec)));
    }
    files
}

/// Opens a UI on a repository that contains the shop.
async fn open(options: Options) -> (Story, Work) {
    let directory = tempfile::tempdir().unwrap();
    let work = Work::of_shop(directory.path()).await;
    let environment = Environment {
        user: "ana".to_owned(),
        variables: work.variables.clone(),
        ..Environment::default()
    };
    let options = Options {
        repo: Some(work.root.clone()),
        ..options
    };
    let mut story = Story::open(options, environment, directory, None).await;
    story.shows("deploy ▪ main").await;
    (story, work)
}

const PIN: &str = "pins/staging/cart.yaml";

/// Plans the promotion of cart from dev to staging, and waits until the plan and its diff are
/// shown.
async fn planned(story: &mut Story) {
    story.keys("g g h h").shows("cart in dev").await;
    story.keys("P").shows("[ y apply ]").await;
    story.shows("data.image").await;
}

#[tokio::test]
async fn a_promotion_is_one_commit_and_the_header_counts_it() {
    let (mut story, work) = open(Options::default()).await;
    planned(&mut story).await;
    for words in [
        "1 file, +1 -1 lines",
        "   pins/staging/cart.yaml",
        "-    name: cart-v2",
        "+    name: cart-v3",
        "readiness in dev is not known",
    ] {
        story.shows(words).await;
    }
    story.keys("y").shows("committed ").await;
    let head = work.head();
    story
        .shows(&format!(
            "committed {head} on main: promote cart-v3 to staging"
        ))
        .await;
    let subject = "promote cart-v3 to staging".to_owned();
    assert_eq!(work.log(), ("2".to_owned(), subject));
    assert_eq!(work.git("status --porcelain"), "");
    assert_eq!(
        work.git("show --numstat --format= HEAD"),
        format!("1\t1\t{PIN}")
    );
    story.shows("deploy ▪ main, ahead 1").await;
    // An undo adds a second commit that reverses the first one.
    story.keys("Z").shows("[ y apply ]").await;
    story.shows("data.image").await;
    story.keys("y").shows("committed ").await;
    story.shows("deploy ▪ main, ahead 2").await;
    let (count, subject) = work.log();
    assert_eq!(count, "3");
    assert_eq!(subject, "undo the last change of cart in staging");
    assert!(
        work.read(PIN).contains("name: cart-v2"),
        "{}",
        work.read(PIN)
    );
    // The audit screen shows both commits with their actions.
    story.keys("esc :").types("audit").keys("enter");
    story.shows("promote  cart/staging").await;
    story.shows("8 entries in 6 chains  whole").await;
}

#[tokio::test]
async fn a_work_tree_that_is_not_ready_is_refused_with_what_to_do() {
    let (mut story, work) = open(Options::default()).await;
    let clean = work.read(PIN);
    let (head, refused) = (work.head(), "refused");
    work.write(PIN, &format!("{clean}# mine\n"));
    story.shows("deploy ▪ main, 1 dirty").await;
    story.keys("g g h h").shows("cart in dev").await;
    story.keys("P").shows(refused).await;
    story
        .shows("pins/staging/cart.yaml has changes that are not committed")
        .await;
    story.shows("git diff HEAD -- pins/staging/cart.yaml").await;
    story.keys("esc").hides(refused);
    work.git("restore pins/staging/cart.yaml");
    work.git("checkout -q --detach");
    story.keys("P").shows("HEAD is detached").await;
    story.shows("git switch BRANCH").await;
    story.keys("esc").hides(refused);
    story.shows("deploy ▪ detached HEAD").await;
    work.git("switch -q main");
    story.shows("deploy ▪ main ").await;
    // Between the plan and its confirmation, another user commits a change of the same file.
    planned(&mut story).await;
    work.write(PIN, &format!("{clean}# theirs\n"));
    work.commit("theirs");
    story
        .keys("y")
        .shows("pins/staging/cart.yaml has changed since the plan was made")
        .await;
    story.shows("check the new plan").await;
    assert_eq!(work.git("rev-parse --short=12 HEAD^"), head);
    assert_eq!(work.read(PIN), format!("{clean}# theirs\n"));
}

#[tokio::test]
async fn a_push_is_a_word_of_its_own_and_a_rejected_one_keeps_the_commit() {
    let (mut story, work) = open(Options::default()).await;
    let tip = || work.git("--git-dir ../origin.git rev-parse --short=12 main");
    let begun = tip();
    planned(&mut story).await;
    story.keys("y").shows("deploy ▪ main, ahead 1").await;
    assert_eq!(tip(), begun, "nothing is pushed unasked");
    story
        .keys("esc :")
        .types("pus")
        .shows("[REMOTE] push the branch")
        .await;
    story.keys("tab").types("o").keys("tab enter");
    story.shows("pushed main to origin").await;
    assert_eq!(tip(), work.head());
    story.hides("ahead");

    // Another user has pushed a commit before this user pushes.
    work.git("clone -q ../origin.git ../theirs");
    for line in [
        "-C ../theirs config user.name Bob",
        "-C ../theirs config user.email bob@example.com",
        "-C ../theirs commit -q --allow-empty -m theirs",
        "-C ../theirs push -q origin main",
    ] {
        work.git(line);
    }
    story.keys("g g l H enter").shows("[ y apply ]").await;
    story.shows("no object changes in the environment").await;
    story
        .keys("y")
        .shows("pin cart in staging at cart-v3")
        .await;
    let head = work.head();
    story.keys("esc :").types("push").keys("enter");
    story.shows("the push was rejected").await;
    story.shows("git pull --rebase origin").await;
    story.shows("git reset --keep origin/main").await;
    story.shows("deploy ▪ main, ahead 1, behind 1").await;
    assert_eq!(work.head(), head, "the commit stays");
    story
        .keys(":")
        .types("log")
        .keys("enter")
        .shows("git push origin main")
        .await;
}

/// The remote of the definitions does not answer. The plan works anyway, because the work tree contains the
/// definitions of the release.
#[tokio::test]
async fn what_the_repository_has_is_planned_without_its_remote() {
    let (mut story, work) = open(Options::default()).await;
    let reference = json!({
        "repository": "https://git.invalid/shop.git",
        "revision": work.git("rev-parse HEAD"),
        "path": "shop.yaml",
    });
    let read = bounded_yaml::documents("", &work.read("releases/cart-v3.yaml")).unwrap();
    let mut release = read[0].value.clone();
    for field in ["component", "componentTypeDefinition"] {
        let name = release["spec"][field]["name"].clone();
        release["spec"][field] = json!({"name": name, "gitRef": reference});
    }
    release["metadata"]["name"] = "cart-v9".into();
    work.write("releases/cart-v9.yaml", &bounded_yaml::write(&release));
    let pin = "pins/dev/cart.yaml";
    work.write(pin, &work.read(pin).replace("cart-v3", "cart-v9"));
    work.commit("by reference");
    story.keys("g g h h").shows("v9 since").await;
    planned(&mut story).await;
    story.keys("y").shows("promote cart-v9 to staging").await;
    assert!(work.read(PIN).contains("name: cart-v9"));
}

#[tokio::test]
async fn commits_go_to_the_branch_that_was_named() {
    let options = Options {
        branch: Some("promo".to_owned()),
        ..Options::default()
    };
    let (mut story, work) = open(options).await;
    story.shows("deploy ▪ main, commits to promo").await;
    let head = work.head();
    planned(&mut story).await;
    story
        .keys("y")
        .shows("on promo: promote cart-v3 to staging")
        .await;
    assert_eq!(work.head(), head);
    assert_eq!(work.git("rev-parse --short=12 promo^"), head);
    // The copied command line names the directory of the repository, so it works from any directory.
    story.keys("Y").shows("is on the clipboard").await;
    let root = work.root.canonicalize().unwrap();
    let line = format!(
        "bowline promote cart --from dev --to staging --repo {} --branch promo --namespace {}",
        root.display(),
        story.model.target_info.namespace
    );
    assert_eq!(story.copied, [line]);
    story.keys("esc :").types("push").keys("enter");
    story.shows("pushed promo to origin").await;
}

#[tokio::test]
async fn marks_rollbacks_and_collections_are_commits_too() {
    let (mut story, work) = open(Options::default()).await;
    let retention = "spec:\n  retention: {keepReleases: 1, minAge: 0s}\n  promotionPaths:";
    let shop = shop().replace("spec:\n  promotionPaths:", retention);
    work.write("shop.yaml", &shop);
    work.commit("keep less");

    story.keys("g g l l").shows("cart in prod").await;
    story.keys(":").types("rollback cart-v3").keys("enter");
    story.shows("type prod and why").await;
    story.shows("data.image").await;
    story.types("prod errors up").keys("enter");
    story.shows("roll back cart in prod to cart-v3").await;
    let said = work.git("show --format=%b HEAD");
    assert!(said.starts_with("errors up\n"), "{said}");
    assert!(
        said.contains("reason: errors up"),
        "the hold has it too: {said}"
    );
    story.keys("esc").shows("Held by").await;

    story.keys("B").shows("type why").await;
    story.types("leaks").keys("enter");
    story.shows("mark cart-v3 bad").await;
    let (count, subject) = work.log();
    assert_eq!(
        (count.as_str(), subject.as_str()),
        ("4", "mark cart-v3 bad")
    );
    let file = work.read("releases/cart-v3.yaml");
    assert!(
        file.contains("bowline.dev/mark") && file.contains("leaks"),
        "{file}"
    );
    story.keys("esc").shows("cart in prod").await;

    story.keys("X").shows("type 1").await;
    story.shows("removed releases/cart-v1.yaml").await;
    story.types("1").keys("enter");
    story.shows("remove 1 release").await;
    assert_eq!(work.log().0, "5");
    assert!(!work.root.join("releases/cart-v1.yaml").exists());
}

#[tokio::test]
async fn a_read_only_session_pushes_nothing_and_a_store_has_nothing_to_push() {
    let options = Options {
        readonly: true,
        ..Options::default()
    };
    let (mut story, work) = open(options).await;
    story.keys(":").types("push").keys("enter");
    story.shows("read-only: --readonly was given").await;
    planned(&mut story).await;
    story.keys("y").hides("committed");
    assert_eq!(work.log().0, "1");
    let mut story = Story::shop().await;
    story.keys(":").types("push").keys("enter");
    story.shows("the target is not a repository").await;
}
