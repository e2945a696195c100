//! Runs `bowline render` and `bowline release` as a user does. The targets are an embedded store and a real
//! cluster.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::cluster::{Cluster, Options};
use crate::example::directory;
use crate::git::repository::git;

/// A user of bowline, with a home directory and with the flags that select a target.
struct User<'a> {
    home: &'a Path,
    target: Vec<String>,
}

impl User<'_> {
    fn run(&self, line: &str) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_bowline"))
            .args(line.split_whitespace())
            .args(&self.target)
            .current_dir(self.home)
            .env_clear()
            .env("HOME", self.home)
            .env("USER", "ana")
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap_or(-1), text(stdout), text(stderr))
    }

    /// Runs a command line of bowline that must succeed. Returns stdout and stderr.
    fn done(&self, line: &str) -> (String, String) {
        let (code, out, err) = self.run(line);
        assert_eq!(code, 0, "{line}: {err}");
        (out, err)
    }

    fn ends(&self, line: &str, code: i32, why: &str) {
        let (found, _, err) = self.run(line);
        assert_eq!(found, code, "{line}: {err}");
        assert!(err.contains(why), "{line}: {err} has no {why:?}");
    }
}

/// Creates all objects of deploy/examples through the API.
async fn fill(client: &kube::Client) {
    use kube::api::{Api, DynamicObject, PostParams};
    use kube::core::{ApiResource, GroupVersionKind};
    let mut open = vec![directory()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    // Skips this directory, because it is a repository of its own.
                    .filter(|path| !path.ends_with("gitops")),
            );
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for document in bounded_yaml::documents("example", &text).unwrap() {
            let object: DynamicObject = serde_json::from_value(document.value).unwrap();
            let types = object.types.clone().unwrap();
            let kind = GroupVersionKind::try_from(&types).unwrap();
            let plural = match kind.kind.as_str() {
                "EnvSettings" => "envsettings".to_owned(),
                kind => format!("{}s", kind.to_lowercase()),
            };
            let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
            let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }
}

/// A user renders definitions, creates a release of them, and renders the release.
fn story(user: &User<'_>) {
    // render gives the same manifests from files and from the target.
    let (from_files, _) = user.done(&format!(
        "render -f {} checkout-service -e staging",
        directory().display()
    ));
    let (now, said) = user.done("render checkout-service -e staging");
    assert!(
        said.contains("checkout-service has no ReleasePin in staging"),
        "{said}"
    );
    assert_eq!(now, from_files);

    // Neither a dry run nor a second create changes anything.
    user.ends(
        "release create checkout-service --version v1 --dry-run",
        3,
        "would be created",
    );
    user.ends("release show checkout-service-v1", 1, "not found");
    let (name, said) = user.done("release create checkout-service --version v1");
    assert_eq!(name, "release.openchoreo.dev/checkout-service-v1\n");
    assert!(said.contains("% saved"), "{said}");
    let (_, said) = user.done("release create checkout-service --version v1");
    assert!(said.contains("already exists"), "{said}");
    let (by_content, _) = user.done("release create checkout-service");
    assert!(
        by_content.starts_with("release.openchoreo.dev/checkout-service-"),
        "{by_content}"
    );
    assert_eq!(user.done("release create checkout-service").0, by_content);
    user.done("release create cart --version v7 -o yaml");

    // `release show` prints the release uncompressed, and the list has its sizes.
    let (shown, said) = user.done("release show checkout-service-v1 -o json");
    assert!(said.contains("% saved"), "{said}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown.pointer("/spec/componentTypeDefinition/content/kind"),
        Some(&Value::from("ComponentTypeDefinition"))
    );
    let (listed, said) = user.done("release list");
    assert!(said.starts_with("3 releases, "), "{said}");
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..4], ["NAME", "COMPONENT", "VERSION", "SIZE"]);
    assert_eq!(rows[1][..3], ["cart-v7", "cart", "v7"]);
    assert_eq!(rows.len(), 4);
    let (listed, _) = user.done("release list cart -o name");
    assert_eq!(listed, "release.openchoreo.dev/cart-v7\n");
    let (wide, _) = user.done("releases list checkout-service -o wide");
    assert!(wide.contains("IMAGES") && wide.contains("HASH"), "{wide}");
    let (list, _) = user.done("release list -o json");
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));

    // A release renders the same manifests as its definitions did, even after the definitions change.
    let (of_release, _) =
        user.done("render checkout-service -e staging --release checkout-service-v1");
    assert_eq!(of_release, from_files);

    // The error names the missing object.
    user.ends(
        "render nobody -e staging",
        1,
        "Component nobody does not exist in namespace default",
    );
    user.ends("render cart -e moon", 1, "Environment moon does not exist");
    user.ends("render cart -e staging --release none", 1, "none");
    user.ends(
        "render cart -e staging --release checkout-service-v1",
        1,
        "belongs to component checkout-service",
    );
    user.ends(
        "release create nobody",
        1,
        "Component nobody does not exist",
    );
    user.ends("release create cart --version ++", 2, "is not a version");
    user.ends("render cart", 2, "--environment");
    user.ends("release create cart --git --embed", 2, "--embed");
    user.ends("render -f missing", 1, "missing: ");
}

/// A user works with ReleasePins, from the first deployment to a rollback.
fn pin_story(user: &User<'_>) {
    let deploy = "deploy checkout-service -e development --release checkout-service-v1";
    user.ends(&format!("{deploy} --dry-run"), 3, "");
    let (out, _) = user.done(deploy);
    assert_eq!(
        out,
        "checkout-service in development: nothing -> checkout-service-v1 (revision 1)\n"
    );
    let (out, _) = user.done(deploy);
    assert!(out.ends_with("(no change)\n"), "{out}");
    let (out, said) = user.done("deploy cart -e development");
    assert!(
        out.starts_with("cart in development: nothing -> cart-"),
        "{out}"
    );
    assert!(
        said.contains("release cart-") && said.contains(" created"),
        "{said}"
    );

    let promote = "promote checkout-service --from development --to staging";
    user.ends(promote, 5, "is not ready in development");
    let promote = format!("{promote} --unready");
    user.ends(
        &promote,
        5,
        "staging requires a reason for every change\nhint: add --reason",
    );
    user.ends(
        &format!("{promote} --dry-run"),
        3,
        "without --reason bowline refuses it",
    );
    let promote = format!("{promote} --reason test");
    user.ends(&format!("{promote} --dry-run"), 3, "");
    user.ends(
        "render checkout-service -e staging --release none",
        1,
        "none",
    );
    let (out, _) = user.done(&promote);
    assert_eq!(
        out,
        "checkout-service in staging: nothing -> checkout-service-v1 (revision 1)\n"
    );
    let (_, said) = user.done("render checkout-service -e staging");
    assert!(
        said.contains(
            "rendering checkout-service-v1, the effective release of checkout-service in staging"
        ),
        "{said}"
    );

    let onward =
        "promote checkout-service --from staging --to production-eu --reason test --unready";
    user.ends(
        onward,
        5,
        "nothing was changed: a change of the production environment production-eu needs a confirmation and there is no terminal\nhint: add --yes",
    );
    user.done(&format!("{onward} --yes"));
    user.ends(
        "promote checkout-service --from development --to production-eu --reason test",
        5,
        "the pipeline has no path from development to production-eu",
    );

    user.done("pin checkout-service -e development --reason INC-42 --until 4h");
    user.ends(
        "deploy checkout-service -e development --release checkout-service-v1",
        5,
        ", INC-42, until ",
    );
    user.done("unpin checkout-service -e development");
    user.ends(
        "unpin checkout-service -e development",
        1,
        "has no hold in development",
    );

    user.ends(
        "rollback cart -e development",
        5,
        "hint: choose a release with --to RELEASE",
    );
    user.done("deploy cart -e development --release cart-v7");
    let (out, _) = user.done("rollback cart -e development --to cart-v7 --no-hold");
    assert!(out.ends_with("(no change)\n"), "{out}");
    user.ends(
        "rollback cart -e development --to-revision 9",
        1,
        "has no revision 9",
    );
    user.ends(
        "promote nobody --from development --to staging --reason x",
        1,
        "component nobody does not exist",
    );
    let unnamed = "history -e development -o name";
    user.ends(unnamed, 2, "the component is missing");
    let config = user.home.join(".config/bowline");
    fs::create_dir_all(&config).unwrap();
    let here = format!("[directories.{:?}]\ncomponent = \"cart\"\n", user.home);
    fs::write(config.join("config.toml"), here).unwrap();
    user.done(unnamed);
    fs::write(
        config.join("config.toml"),
        "[directories.x]\ncomponents = 1\n",
    )
    .unwrap();
    user.ends(unnamed, 2, "unknown field `components`");
    fs::remove_dir_all(user.home.join(".config")).unwrap();
    user.ends(
        "promote --from development --to staging",
        2,
        "the component is missing",
    );
    let (out, _) =
        user.done("promote --all --from development --to staging --reason test --unready");
    assert_eq!(out.lines().count(), 2, "{out}");

    let (matrix, _) = user.done("status");
    assert!(matrix.starts_with("COMPONENT "), "{matrix}");
    let (matrix, _) = user.done("status checkout-service -o json");
    let matrix: Value = serde_json::from_str(&matrix).unwrap();
    assert_eq!(
        matrix["components"][0]["environments"][0]["release"],
        "checkout-service-v1"
    );
    user.ends(
        "status nobody",
        1,
        "component nobody does not exist; known: ",
    );
    let (history, _) = user.done("history checkout-service -e development");
    let actions: Vec<_> = history
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert_eq!(actions, ["Unpin", "Pin", "Deploy"], "{history}");
    user.ends(
        "history search -e development",
        1,
        "search is not deployed in development",
    );

    let (_, said) = user.done("audit verify");
    assert!(!said.contains("tampered"), "{said}");
    let (listed, _) = user.done("audit list checkout-service");
    assert!(
        listed.contains("INC-42") || listed.contains("Pin"),
        "{listed}"
    );
    let (exported, _) = user.done("audit export --format md");
    assert!(exported.contains("checkout-service-v1"), "{exported}");
}

/// A user creates a release by git reference, from a clean and pushed work tree.
fn git_story(user: &User<'_>) {
    let remote = user.home.join("platform.git");
    fs::create_dir_all(&remote).unwrap();
    git(&remote, &["init", "-q", "--bare", "-b", "main"], b"");
    let tree = user.home.join("platform");
    fs::create_dir_all(&tree).unwrap();
    let copied = Command::new("cp")
        .arg("-r")
        .arg(directory().join("."))
        .arg(&tree)
        .status()
        .unwrap();
    assert!(copied.success());
    let remote = format!("file://{}", remote.display());
    for line in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["commit", "-q", "-m", "all"],
        &["remote", "add", "origin", &remote],
    ] {
        git(&tree, line, b"");
    }
    let create = "release create checkout-service --version v2 --git -f platform";
    user.ends(create, 5, "git push");
    git(&tree, &["push", "-q", "-u", "origin", "main"], b"");
    user.done(create);
    let (shown, _) = user.done("release show checkout-service-v2");
    assert!(shown.contains("gitRef:"), "{shown}");
    assert!(!shown.contains("content:"), "{shown}");
    let render = "render checkout-service -e staging --release checkout-service-v2";
    user.ends(render, 1, "file");
    let (by_git, _) = user.done(&format!("{render} --allow-file-repositories"));
    let (embedded, _) =
        user.done("render checkout-service -e staging --release checkout-service-v1");
    assert_eq!(by_git, embedded);
    // The render uses the git cache, because the repository is gone.
    fs::rename(user.home.join("platform.git"), user.home.join("gone.git")).unwrap();
    let (again, _) = user.done(&format!("{render} --allow-file-repositories"));
    assert_eq!(again, by_git);
    let (resolved, _) =
        user.done("release show checkout-service-v2 --resolve --allow-file-repositories");
    assert!(
        resolved.contains("kind: ComponentTypeDefinition"),
        "{resolved}"
    );

    // bowline refuses other content under the same version, and refuses a work tree with a changed file.
    let file = tree.join("components/checkout-service.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "# changed\n").unwrap();
    user.ends(create, 5, "not clean");
    let workload = tree.join("workloads/checkout-service.yaml");
    let text = fs::read_to_string(&workload).unwrap();
    fs::write(
        &workload,
        text.replacen("image: ", "image: other.example.com/", 1),
    )
    .unwrap();
    user.ends(
        "release create checkout-service --version v1 -f platform",
        5,
        "already exists with different content",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_target() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store.db");
    let embedded = bowline::fixture::store::open(&store, "ana").await;
    fill(&embedded.client("default")).await;
    drop(embedded);
    // The test holds the lock of the controllers, so that no controller changes objects.
    let controllers = bowline::engine::controller_status::lock_file(&store);
    let controllers = std::fs::File::create(controllers).unwrap();
    controllers.lock().unwrap();
    let home = home.path().to_owned();
    tokio::task::spawn_blocking(move || {
        let user = User {
            target: vec![format!("--embedded={}", store.display())],
            home: &home,
        };
        story(&user);
        git_story(&user);
        pin_story(&user);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_real_cluster() {
    let Some(cluster) = Cluster::start(Options::default()).await else {
        return;
    };
    let client = cluster.client();
    crate::cluster::install_bowline(&client).await;
    fill(&client).await;
    let kubeconfig = cluster.kubeconfig();
    tokio::task::spawn_blocking(move || {
        let home = tempfile::tempdir().unwrap();
        let user = User {
            target: vec![format!("--kubeconfig={}", kubeconfig.display())],
            home: home.path(),
        };
        story(&user);
        pin_story(&user);
    })
    .await
    .unwrap();
}
